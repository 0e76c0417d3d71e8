"""A service under load: 64 analysts, previews beside them, memory over many requests, slow clients.

Each part prints what was measured; together they are written to bench/results/service.md. Overspending and lost answers fail.
"""

import asyncio
import contextlib
import sys
import tempfile
import time
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "server")]

from served import QUESTION, running  # noqa: E402 -- idem
from test_wire import slow_sockets  # noqa: E402 -- idem

import registers  # noqa: E402 -- beside the tests

ANALYSTS = 64
SECONDS = 60
PREVIEWS = 20
MANY = 20_000


def quantiles(values):
    """The median and the 99th of a hundred, in milliseconds."""
    ordered = sorted(values)
    if not ordered:
        return "none"
    at = [ordered[min(int(part * len(ordered)), len(ordered) - 1)] * 1000 for part in (0.5, 0.99)]
    return f"median {at[0]:.0f} ms, p99 {at[1]:.0f} ms of {len(ordered):,}"


def p99(values):
    """The 99th of a hundred."""
    ordered = sorted(values)
    return ordered[min(int(0.99 * len(ordered)), len(ordered) - 1)] if ordered else float("nan")


def client(service, token):
    """Return a client with room for many requests."""
    limits = httpx.Limits(max_connections=500, max_keepalive_connections=100)
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.AsyncClient(base_url=f"{service.url}/api/v1", headers=headers, timeout=120, limits=limits)


async def at_a_rate(send, rate, seconds):
    """Send so many a second, whatever becomes of those before; return how long each took."""
    times, tasks = [], []

    async def one():
        begun = time.perf_counter()
        with contextlib.suppress(httpx.HTTPError):
            response = await send()
            if response.status_code == 200:
                times.append(time.perf_counter() - begun)

    for number in range(int(rate * seconds)):
        tasks.append(asyncio.create_task(one()))
        del number
        await asyncio.sleep(1 / rate)
    await asyncio.gather(*tasks)
    return times


async def asking(own, place, until, outcomes):
    """Ask one question after another."""
    number = 0
    while time.monotonic() < until:
        number += 1
        text = f"SELECT city, COUNT(*) AS n FROM visits WHERE spent > {place}.{number:03} GROUP BY city"
        key = f"load-{place}-{number}"
        body = {"question": text, "options": {"spend": "0.02%"}, "wait": 60}
        begun = time.perf_counter()
        while True:
            try:
                response = await own.post("/answers", json=body, headers={"Idempotency-Key": key})
            except httpx.HTTPError:
                continue
            if response.status_code not in {202, 429, 503}:
                break
            await asyncio.sleep(0.1)
        outcomes.append((key, text, response.status_code, time.perf_counter() - begun))


async def measure(service, tokens, seconds):
    """Previews alone, then everything together."""
    lines = []
    async with contextlib.AsyncExitStack() as stack:
        own = [await stack.enter_async_context(client(service, token)) for token in tokens]
        warm = {"question": QUESTION, "options": {"spend": "1%"}}
        for one in own[:4]:
            await one.post("/answers", json={**warm, "wait": 60})
            await one.post("/previews", json=warm)

        def preview():
            return own[0].post("/previews", json=warm)

        alone = await at_a_rate(preview, PREVIEWS, seconds / 3)
        lines.append(f"previews at {PREVIEWS} a second alone: {quantiles(alone)}")
        outcomes, until = [], time.monotonic() + seconds
        load = [asyncio.create_task(asking(one, place, until, outcomes)) for place, one in enumerate(own)]
        beside, bare = await asyncio.gather(
            at_a_rate(preview, PREVIEWS, seconds - 5), at_a_rate(lambda: own[1].get("/me"), 5, seconds - 5)
        )
        await asyncio.gather(*load)
        good = [outcome for outcome in outcomes if outcome[2] == 200]
        lines += [
            f"{len(own)} analysts for {seconds:.0f} s: {len(good):,} answers, {len(outcomes) - len(good)} others",
            f"answers: {len(good) / seconds:.1f} a second, {quantiles([one[3] for one in good])}",
            f"previews beside them: {quantiles(beside)}",
            f"the bare route beside them: {quantiles(bare)}; previews' p99 is {p99(beside) / p99(bare):.1f} times its",
        ]
    return lines, outcomes


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
    told = {text for _, text, status, _ in outcomes if status == 200}
    lost = told - set(charged)
    twice = len(charged) - len(set(charged))
    over = [one["name"] for one in budget["by_analyst"] if one["spent_share"] > 1]
    if lost or over or chain != "agrees" or any(charged.count(text) > 1 for text in told):
        raise SystemExit(f"lost {len(lost)}, overspent {over}, chain {chain}")
    return (
        f"ledger: {len(charged):,} charges, {committed:,} answers, 0 lost, {twice} charged twice, 0 overspent, chain {chain}"
    )


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
    async with client(service, token) as one:
        body = {"question": QUESTION, "options": {"spend": "1%"}}
        sends = (lambda: one.post("/previews", json=body), lambda: one.get("/budget"), lambda: one.get("/tables"))
        for _ in range(10):
            left = number // 10
            while left > 0:
                batch = min(left, 48)
                await asyncio.gather(*(sends[place % 3]() for place in range(batch)))
                left -= batch
            sizes.append(memory(service))
    return sizes


def slow_clients(service, token):
    """How a thousand slow clients change what others see."""

    async def look():
        async with client(service, token) as one:
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
    registers.another_register()
    out = []
    for title, said in (("answer_every off", {}), ("answer_every on (1 s)", {"tick": "1", "when_ready": False})):
        with tempfile.TemporaryDirectory() as folder, running(folder, "--rate", "100000", deadline=60, **said) as service:
            owner, one = service.token("", "--owner"), service.token("ana")
            tokens = [service.token("ana" if place % 2 else "bob") for place in range(ANALYSTS)]
            lines, outcomes = asyncio.run(measure(service, tokens, seconds))
            lines.append(account(service, owner, outcomes))
            if not said:
                sizes = asyncio.run(many(service, one, number))
                lines.append(f"memory over {number:,} requests, MB: {', '.join(f'{size:.0f}' for size in sizes)}")
                lines.append(slow_clients(service, one))
        out += [f"## {title}", "", *(f"- {line}" for line in lines), ""]
        print("\n".join(out[-len(lines) - 3 :]), flush=True)
    load = Path("/proc/loadavg").read_text(encoding="ascii").split()[0]
    head = [
        "# A service under load",
        "",
        f"Two cores, 2 processes of HTTP; {time.strftime('%Y-%m-%d')}; load before: {load}.",
        "",
    ]
    (ROOT / "bench" / "results" / "service.md").write_text("\n".join([*head, *out]), encoding="utf-8")


if __name__ == "__main__":
    main()
