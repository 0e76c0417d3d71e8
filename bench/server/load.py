"""A service under load: 64 analysts, previews beside them, the last of a budget, memory over many requests, slow clients.

Each part prints what was measured; together they are written to bench/results/service.md. Overspending and lost answers fail.
`python bench/server/load.py SECONDS REQUESTS` for a shorter trial, which is printed and not written.
"""

import asyncio
import contextlib
import multiprocessing
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "server")]

from served import QUESTION, running  # noqa: E402 -- idem
from test_real_sockets import slow_sockets  # noqa: E402 -- idem

import registers  # noqa: E402 -- beside the tests

ANALYSTS = 64
SECONDS = 60
PREVIEWS = 20
MANY = 20_000
DEAR = "3%"
"""Of the own share: so many questions at a time want more than is left."""
WARM = {"question": QUESTION, "options": {"spend": "1%"}}


def at(values, part):
    """A quantile."""
    ordered = sorted(values)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)] if ordered else float("nan")


def quantiles(values):
    """The median and the 99th of a hundred, in milliseconds."""
    return f"median {1000 * at(values, 0.5):.0f} ms, p99 {1000 * at(values, 0.99):.0f} ms of {len(values):,}"


def client(url, token):
    """Return a client with room for many requests."""
    limits = httpx.Limits(max_connections=500, max_keepalive_connections=100)
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.AsyncClient(base_url=f"{url}/api/v1", headers=headers, timeout=120, limits=limits, trust_env=False)


async def at_a_rate(send, rate, seconds):
    """Send so many a second, whatever becomes of those before; return how long each took. Whatever is no answer fails."""
    times, tasks, wrong = [], [], []

    async def one():
        begun = time.perf_counter()
        try:
            response = await send()
        except httpx.HTTPError as error:
            wrong.append(repr(error))
            return
        if response.status_code == 200:
            times.append(time.perf_counter() - begun)
        else:
            wrong.append(response.text)

    begun = time.monotonic()
    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(begun + number / rate - time.monotonic(), 0))
        tasks.append(asyncio.create_task(one()))
    await asyncio.gather(*tasks)
    if wrong:
        raise SystemExit(f"{len(wrong)} of {len(tasks)} requests were not answered; the first: {wrong[0][:300]}")
    return times


# ---- analysts who ask ----------------------------------------------------------------------------------------------------


async def outcome_of(own, key, text, spend):
    """Hand a question over with its key until it has an outcome; return its status and error."""
    body = {"question": text, "options": {"spend": spend}, "wait": 60}
    while True:
        try:
            response = await own.post("/answers", json=body, headers={"Idempotency-Key": key})
        except httpx.HTTPError:
            continue
        if response.status_code not in {202, 429, 503}:
            return response.status_code, response.json().get("error")
        await asyncio.sleep(0.1)


async def asking(own, place, until, outcomes):
    """Ask one question after another."""
    number = 0
    while time.monotonic() < until:
        number += 1
        text = f"SELECT city, COUNT(*) AS n FROM visits WHERE spent > {place}.{number:03} GROUP BY city"
        begun = time.perf_counter()
        status, error = await outcome_of(own, f"load-{place}-{number}", text, "0.02%")
        outcomes.append((text, status, error, time.perf_counter() - begun))


async def grabbing(own, place, outcomes):
    """Ask dear questions until nothing is left."""
    for number in range(100):
        text = f"SELECT COUNT(*) AS n FROM visits WHERE spent < {place}.{number:03}"
        status, error = await outcome_of(own, f"last-{place}-{number}", text, DEAR)
        outcomes.append((text, status, error, 0.0))
        if error == "BudgetExceeded":
            return


async def _load(url, tokens, seconds):
    outcomes = []
    async with contextlib.AsyncExitStack() as stack:
        own = [await stack.enter_async_context(client(url, token)) for token in tokens]
        if seconds:
            until = time.monotonic() + seconds
            await asyncio.gather(*(asking(one, place, until, outcomes) for place, one in enumerate(own)))
        else:
            await asyncio.gather(*(grabbing(one, place, outcomes) for place, one in enumerate(own)))
    return outcomes


def load(url, tokens, seconds):
    """Be all analysts, in a process of their own: what is measured beside them must not wait for them. 0 s: to the end."""
    return asyncio.run(_load(url, tokens, seconds))


# ---- what is measured ----------------------------------------------------------------------------------------------------


async def measure(service, tokens, other, seconds):
    """Previews alone, then beside everybody; then the last of the budget."""
    loop, context = asyncio.get_running_loop(), multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        async with client(service.url, other) as own:
            for _ in range(4):
                await own.post("/answers", json={**WARM, "wait": 60})
                await own.post("/previews", json=WARM)

            def preview():
                return own.post("/previews", json=WARM)

            def bare():
                return own.get("/me")

            alone = await at_a_rate(preview, PREVIEWS, max(seconds / 3, 5))
            lines = [f"previews at {PREVIEWS} a second alone: {quantiles(alone)}"]
            asked = loop.run_in_executor(pool, load, service.url, tokens, seconds)
            await asyncio.sleep(min(3, seconds / 4))  # until its process asks
            while_asked = max(seconds - 3, 2)
            beside, plain = await asyncio.gather(
                at_a_rate(preview, PREVIEWS, while_asked), at_a_rate(bare, PREVIEWS, while_asked)
            )
            outcomes = await asked
        last = await loop.run_in_executor(pool, load, service.url, tokens, 0)
    good = [outcome[3] for outcome in outcomes if outcome[1] == 200]
    bought, refused = sum(one[1] == 200 for one in last), sum(one[2] == "BudgetExceeded" for one in last)
    lines += [
        f"{len(tokens)} analysts for {seconds:.0f} s: {len(good):,} answers, {len(outcomes) - len(good)} others",
        f"answers: {len(good) / seconds:.1f} a second, {quantiles(good)}",
        f"previews at {PREVIEWS} a second beside them: {quantiles(beside)}",
        f"the bare route beside them, as often: {quantiles(plain)}",
        f"p99 of previews over that of the bare route: {at(beside, 0.99) / at(plain, 0.99):.1f}",
        f"{len(tokens)} analysts want {DEAR} each at once until nothing is left: {bought} bought, {refused} refused",
    ]
    if len(good) != len(outcomes) or refused != len(tokens) or bought + refused != len(last):
        raise SystemExit(f"other outcomes: {[one for one in (*outcomes, *last) if one[1] != 200][:3]}")
    return lines, [*outcomes, *last]


def account(service, owner, outcomes):
    """Compare what was told with the ledger: nothing lost, nothing paid twice, nothing beyond the limits."""
    with service.client(owner) as one:
        lines, before = [], None
        while True:
            page = one.get("/history", params={"limit": 1000, **({} if before is None else {"before": before})}).json()
            lines += page["entries"]
            before = page["next"]
            if before is None:
                break
        budget = one.get("/budget").json()
        chain = one.get("/verification").json()["chain"]
    charged = [line["question"] for line in lines if line["kind"] == "reserved"]
    committed = sum(line["kind"] == "committed" for line in lines)
    told = {text for text, status, *_ in outcomes if status == 200}
    lost, twice = told - set(charged), len(charged) - len(set(charged))
    unanswered = len(charged) - committed
    over = [one["name"] for one in budget["by_analyst"] if one["spent_share"] > 1]
    if lost or over or twice or unanswered or len(told) != len(charged) - 1 or chain != "agrees":
        found = f"{len(told)} told, {len(charged)} charged, {unanswered} of them unanswered, {twice} twice, overspent {over}"
        raise SystemExit(f"lost {len(lost)}: {found}; chain: {chain}")
    shares = ", ".join(f"{one['name']} {100 * one['spent_share']:.2f} %" for one in budget["by_analyst"])
    return (
        f"ledger: {len(charged):,} charges, {committed:,} answers, 0 lost, 0 charged twice, 0 overspent ({shares} of their "
        f"shares), chain {chain}"
    )


def tokens_of(service, owner, names):
    """Make a token for each name."""
    with service.client(owner) as one:
        return [one.post("/tokens", json={"role": "analyst", "name": name}).json()["token"] for name in names]


def memory(service):
    """Megabytes that the processes of HTTP hold together."""
    total = 0
    for pid in service.children()["http"]:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        total += int(text.partition("VmRSS:")[2].split()[0])
    return total / 1024


async def many(service, token, number):
    """Previews, looks and stored answers, so many in all; return memory at tenths of the way."""
    sizes = [memory(service)]
    async with client(service.url, token) as one:
        sends = (
            lambda: one.post("/previews", json=WARM),
            lambda: one.get("/budget"),
            lambda: one.get("/tables"),
            lambda: one.post("/answers", json=WARM),
        )
        for _ in range(10):
            left = number // 10
            while left > 0:
                batch = min(left, 48)
                replies = await asyncio.gather(*(sends[place % 4]() for place in range(batch)))
                if any(reply.status_code != 200 for reply in replies):
                    raise SystemExit(next(reply.text for reply in replies if reply.status_code != 200))
                left -= batch
            sizes.append(memory(service))
    return sizes


def slow_clients(service, token):
    """How a thousand slow clients change what others see."""

    async def look():
        async with client(service.url, token) as one:
            return await at_a_rate(lambda: one.get("/me"), 20, 5)

    before = asyncio.run(look())
    slow = slow_sockets(service.port, 1000)
    during = asyncio.run(look())
    for one in slow:
        one.close()
    return f"the bare route: {quantiles(before)}; beside 1,000 slow clients: {quantiles(during)}"


def main():
    """Measure, print and write."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    number = int(sys.argv[2]) if len(sys.argv) > 2 else MANY
    busy = Path("/proc/loadavg").read_text(encoding="ascii").split()[0]
    registers.another_register()
    out = []
    for title, said in (("answer_every off", {}), ("answer_every on (1 s)", {"tick": "1", "when_ready": False})):
        with tempfile.TemporaryDirectory() as folder, running(folder, "--rate", "100000", deadline=60, **said) as service:
            owner = service.token("", "--owner")
            other, *tokens = tokens_of(service, owner, ["ana", *(("bob", "ana")[place % 2] for place in range(ANALYSTS))])
            lines, outcomes = asyncio.run(measure(service, tokens, other, seconds))
            lines.append(account(service, owner, outcomes))
            if not said:
                sizes = asyncio.run(many(service, other, number))
                grown = 100 * (sizes[-1] / sizes[2] - 1)
                told = ", ".join(f"{size:.0f}" for size in sizes)
                lines.append(f"memory over {number:,} requests, MB: {told}; {grown:+.1f} % since the second tenth")
                lines.append(slow_clients(service, other))
        out += [f"## {title}", "", *(f"- {line}" for line in lines), ""]
        print("\n".join(out[-len(lines) - 3 :]), flush=True)
    head = [
        "# A service under load",
        "",
        f"Two cores, 2 processes of HTTP; {time.strftime('%Y-%m-%d')}; load of the machine before: {busy}.",
        "",
    ]
    if len(sys.argv) == 1:
        (ROOT / "bench" / "results" / "service.md").write_text("\n".join([*head, *out]), encoding="utf-8")


if __name__ == "__main__":
    main()
