// A rollout whose readings differ: both rewards, the changes that they depend on, and how to settle it.

function contestedOf(result) {
  const found = result.verification || {};
  return [["", found], ...Object.entries(found.steps || {})].filter(([, one]) => one && one.contested && one.readings);
}

function contestedBadge(result) {
  const open = contestedOf(result).some(([, one]) => !one.settled_by);
  if (!open) return null;
  return h("span", { class: "badge is-other", id: "contested" }, result.settlement ? "contested, settled" : "contested");
}

function contestedViews(doc) {
  return contestedOf(doc.result).map(([step, one]) => h("section", { class: "card contested" },
    h("h2", {}, `Contested${step ? `: step ${step}` : ""}`), h("p", {}, contestedText(one, doc.result)),
    facts(Object.entries(one.readings).filter(([, reading]) => reading).map(([name, reading]) => [name.replaceAll("_", " "), reading.rewards ? rewardText(reading.rewards) : reading.error || "no reward"])),
    (one.culprits || []).map((culprit) => h("div", { class: "culprit" },
      h("p", {}, h("strong", { class: "mono" }, culprit.path), ` ${culprit.change}: ${culprit.why}`, h("span", { class: "soft" }, ` (${culprit.row})`)),
      culprit.diff && diffView({ path: culprit.path, lines: diffLines(culprit.diff) }))),
    !one.settled_by && !doc.result.settlement && settleCommands(doc)));
}

function contestedText(one, result) {
  const by = { flake: "A second clean reading paid as much: a flaky test. It is scored as left.", certificate: "The reference solution makes the same changes. It is scored as left.", "as-left-failed": "The agent's changes keep the verifier from a reward: it failed." };
  if (one.settled_by) return by[one.settled_by] || `Settled by ${one.settled_by}.`;
  const judged = result.settlement;
  if (judged) return `${judged.by} let ${judged.choice} count: ${judged.because}`;
  return "The tests pay more on the files as the agent left them than without these changes. No evidence speaks for them; clean counts.";
}

function diffLines(text) {
  return text.split("\n").slice(2).map((line) => (line.startsWith("@@") ? ["…", ""] : [line.slice(0, 1) || " ", line.slice(1)]));
}

function settleCommands(doc) {
  const path = /^[\w./-]+$/.test(doc.path) ? doc.path : `'${doc.path.replaceAll("'", "'\\''")}'`;
  return ["--as-left", "--clean"].map((choice) => {
    const command = `bench eval settle ${path} ${choice} --because "WHY"`;
    return h("p", { class: "settle" }, h("code", {}, command), " ", copyButton(command));
  });
}
