// Lines of the ledger, put together as a reader thinks of them: a question, and what became of it.
const SETTLES = { committed: "answered", failed: "failed", voided: "voided" };

/** Questions with their settlement; other entries stand as they are. The lines are newest first, and so is what is returned. */
export function together(lines) {
  const byId = new Map();
  const found = [];
  const oldestFirst = [...lines].reverse();
  for (const line of oldestFirst) {
    const state = SETTLES[line.kind];
    if (state && byId.has(line.refers)) {
      const begun = byId.get(line.refers);
      begun.state = state;
      begun.answer = line.answer ?? begun.answer;
      continue;
    }
    const entry = { ...line, state: line.kind === "reserved" ? "open" : line.kind, answer: line.answer ?? null };
    if (line.kind === "reserved") byId.set(line.id, entry);
    found.push(entry);
  }
  return found.reverse();
}
