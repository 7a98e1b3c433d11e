// Which page is shown: everything after the # in the address.

const CURRENT = { page: null, number: 0 };
const ROUTES = { jobs: jobsPage, job: jobPage, rollout: rolloutPage, compare: comparePage };

function routeOf(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  return { parts: path.split("/").filter(Boolean), query: Object.fromEntries(new URLSearchParams(query || "")) };
}

function replaceQuery(path, state) {
  const query = new URLSearchParams(Object.entries(state).filter(([, value]) => value)).toString();
  history.replaceState(null, "", `#${path}${query ? `?${query}` : ""}`);
}

function showCrumbs(crumbs) {
  const all = INDEX.jobs ? crumbs : crumbs.filter(([name]) => name !== "Jobs");
  fill(document.getElementById("crumbs"), h("a", { to: INDEX.jobs > 1 ? "/jobs" : INDEX.opens, class: "brand" }, "BenchFlow"),
    h("ol", {}, all.map(([name, to], i) => h("li", {}, h("a", { to, "aria-current": i === all.length - 1 ? "page" : null }, name)))));
}

async function navigate() {
  const route = routeOf(location.hash);
  if (!route.parts.length) { history.replaceState(null, "", `#${INDEX.opens}`); return navigate(); }
  closeDrawer();
  const page = CURRENT.page;
  if (page && page.go && page.key === route.parts.slice(0, page.key.split("/").length).join("/")) { page.go(route); return null; }
  const number = (CURRENT.number += 1);
  const make = Object.hasOwn(ROUTES, route.parts[0]) ? ROUTES[route.parts[0]] : null;
  let next;
  try {
    if (!make) throw new Error("There is no such page.");
    next = await make(route);
  } catch (error) {
    next = { title: "Not here", crumbs: [["Jobs", "/jobs"]], node: h("div", { class: "page" }, h("h1", {}, "Not here"), h("p", { class: "card problem" }, error.message)) };
  }
  if (number !== CURRENT.number) { if (next.dispose) next.dispose(); return null; }
  if (page && page.dispose) page.dispose();
  CURRENT.page = next;
  document.title = `${clean(next.title)} · BenchFlow`;
  showCrumbs(next.crumbs);
  window.scrollTo(0, 0);
  fill(document.getElementById("main"), next.node);
  if (next.start) next.start();
  say(next.title);
  document.documentElement.dataset.ready = String(number);
  return null;
}

let INDEX = { opens: "/jobs", jobs: 0 };

async function start() {
  setTheme(rememberedTheme());
  fill(document.getElementById("tools"), button("Theme", nextTheme, { class: "chip quiet", title: "t" }), button("Keys", showKeys, { class: "chip quiet", title: "?" }));
  document.getElementById("skip").addEventListener("click", () => document.getElementById("main").focus());
  try {
    INDEX = await get("index");
  } catch (error) {
    fill(document.getElementById("main"), h("p", { class: "card problem" }, error.message));
    return;
  }
  EXPORTED = EXPORTED || Boolean(INDEX.exported);
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", navigate);
  await navigate();
}

start();
