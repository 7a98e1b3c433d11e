// The list of jobs.

const LISTED_ARMS = 4;

function scoreCell(summary) {
  const arms = Object.entries((summary || {}).arms || {});
  if (arms.length > 1) return h("div", {}, arms.slice(0, LISTED_ARMS).map(([name, arm]) => h("div", {}, h("span", { class: "soft small" }, `${name} `), scoreCell(arm))), arms.length > LISTED_ARMS && h("span", { class: "soft small" }, `and ${arms.length - LISTED_ARMS} more arms`));
  if (!summary || !summary.scored) return h("span", { class: "soft" }, "no score yet");
  const interval = summary.score_interval;
  return h("span", { class: "score-cell" }, h("span", {}, h("strong", {}, percent(summary.score_ratio)), interval && h("span", { class: "soft small", title: "95 % interval" }, ` ${(interval[0] * 100).toFixed(1)} to ${(interval[1] * 100).toFixed(1)}`)), scoreBar(summary));
}

function countsOf(job) {
  return Object.fromEntries(OUTCOMES.filter((name) => (job.counts || {})[name]).map((name) => [name, job.counts[name]]));
}

function countsText(counts) {
  return Object.entries(counts).filter(([, n]) => n).map(([name, n]) => `${n.toLocaleString("en")} ${words(name)}`).join(", ");
}

function versions(facts) {
  const plugins = Object.keys(facts.plugins || {});
  if (!plugins.length) return null;
  const core = listed(facts.core);
  return fold(`${core ? `${core}, ` : ""}${count(plugins.length, "plugin")}`, () => h("ul", { class: "versions" }, plugins.map((name) => h("li", {}, splitOnce(name, "=").join(" ")))));
}

function listed(counts) {
  const names = Object.keys(counts || {});
  return names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ");
}

async function jobsPage() {
  const chosen = new Set();
  const box = h("div", {});
  const compare = button("Compare", () => { location.hash = `/compare/${[...chosen].join("+")}`; }, { class: "primary", disabled: true });
  const choose = (id, on) => {
    if (on) chosen.add(id); else chosen.delete(id);
    compare.disabled = chosen.size < 2;
    compare.textContent = chosen.size < 2 ? "Compare" : `Compare ${chosen.size}`;
  };
  const search = h("input", { type: "search", id: "filter", placeholder: "Filter: job, agent, model …", "aria-label": "Filter jobs", on: { input: () => sift() } });
  const sift = () => {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of box.querySelectorAll("tbody tr")) row.hidden = !wanted.every((word) => row.textContent.toLowerCase().includes(word));
  };
  const draw = async (fresh) => {
    const { jobs } = await get("jobs", { fresh });
    const sorted = [...jobs].sort((a, b) => (b.started || 0) - (a.started || 0));
    const empty = ["model", "dataset"].filter((name) => !sorted.some((job) => job.facts && Object.keys(job.facts[name] || {}).length));
    fill(box, h("div", { class: `wide card flush ${empty.map((name) => `no-${name}`).join(" ")}`, tabindex: "0", role: "group", "aria-label": "Jobs" },
      h("table", { class: "plain jobs" },
        h("thead", {}, h("tr", {}, ["", "Job", "Score", "Coverage", "Outcomes", "Agent", "Model", "Sandbox", "Dataset", "Cost", "Duration", "Started"].map((name) => h("th", { scope: "col" }, name || h("span", { class: "unseen" }, "Compare"))))),
        h("tbody", {}, sorted.map((job) => jobRow(job, chosen, choose))))));
    search.hidden = sorted.length < 8;
    sift();
  };
  await draw(false);
  const stop = live("", () => draw(true));
  return {
    title: "Jobs", crumbs: [], dispose: stop,
    node: h("div", { class: "page" }, h("div", { class: "page-head" }, h("h1", {}, "Jobs"), h("span", { class: "grow" }), search, compare), box),
    move: (by) => stepLinks(box, by), filter: () => search.focus(),
  };
}

function jobRow(job, chosen, choose) {
  if (job.broken) return h("tr", {}, h("td", {}), h("th", { scope: "row" }, job.name), h("td", { colspan: 10, class: "problem" }, job.broken));
  const pick = h("input", { type: "checkbox", "aria-label": `compare ${job.name}`, on: { change: (e) => choose(job.id, e.target.checked) } });
  pick.checked = chosen.has(job.id);
  const s = job.summary;
  return h("tr", {}, h("td", {}, pick),
    h("th", { scope: "row" }, link(`/job/${job.id}`, job.name), job.running ? [" ", badge("running")] : !job.finished && [" ", badge("unfinished")], versions(job.facts)),
    h("td", {}, scoreCell(s)),
    h("td", { class: "number" }, s.total ? `${s.scored}/${s.total}` : "–"),
    h("td", {}, outcomeBar(countsOf(job)), h("span", { class: "soft tiny" }, countsText(countsOf(job)))),
    h("td", {}, listed(job.facts.agent)), h("td", {}, listed(job.facts.model)), h("td", {}, listed(job.facts.sandbox)), h("td", {}, listed(job.facts.dataset)),
    h("td", { class: "number" }, used(s, "total_cost_usd", money)), h("td", { class: "number" }, s.elapsed_sec ? duration(s.elapsed_sec) : ""), h("td", { class: "moment" }, when(job.started)));
}

function stepLinks(box, by) {
  const links = [...box.querySelectorAll("tbody tr:not([hidden]) th a")];
  const at = links.indexOf(document.activeElement);
  const next = links[Math.max(0, Math.min(links.length - 1, at + by))];
  if (next) next.focus();
}
