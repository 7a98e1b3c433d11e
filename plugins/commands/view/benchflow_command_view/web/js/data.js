// Documents by key: from the page itself where it was exported as one file, else from beside it.

const EMBEDDED = new Map();
for (const element of document.querySelectorAll('script[type="application/x-benchflow"]')) {
  EMBEDDED.set(element.dataset.key, element);
}
const CACHE = new Map();
const CACHED = 60;
let EXPORTED = EMBEDDED.size > 0;

async function unpack(element) {
  const packed = Uint8Array.from(atob(element.textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

async function load(key) {
  if (EMBEDDED.has(key)) return unpack(EMBEDDED.get(key));
  if (EMBEDDED.size) throw new Error("This is not part of the exported file.");
  const answer = await fetched(`data/${key}.json`);
  if (answer.ok) return answer.json();
  if (answer.status === 404) throw new Error(EXPORTED ? "This is not part of the export." : "There is no such thing here.");
  const told = await answer.json().catch(() => ({}));
  throw new Error(told.error || `The server answered ${answer.status}.`);
}

// A browser drops what is under way when any network of the host comes or goes, so a failure is tried again.
async function fetched(address) {
  for (const wait of [100, 300, 900, 2000, 3000]) {
    try { return await fetch(address, { cache: "no-store" }); } catch { await new Promise((go) => setTimeout(go, wait)); }
  }
  throw new Error("The server is gone: run bench view again.");
}

function get(key, { fresh = false } = {}) {
  if (!fresh && CACHE.has(key)) return CACHE.get(key);
  const promise = load(key);
  CACHE.delete(key);
  CACHE.set(key, promise);
  promise.catch(() => CACHE.delete(key));
  if (CACHE.size > CACHED) CACHE.delete(CACHE.keys().next().value);
  return promise;
}

function forget(prefix) {
  for (const key of [...CACHE.keys()]) if (key.startsWith(prefix)) CACHE.delete(key);
}

// Column by column to rows of numbers and texts; a text is looked up when it is needed.
class Table {
  constructor(document_) {
    this.columns = document_.columns;
    this.length = document_.rows;
    this.numbers = {};
    for (const [name, column] of Object.entries(this.columns)) {
      if (Array.isArray(column)) this.numbers[name] = Float64Array.from(column, (v) => (v === null ? NaN : v));
    }
  }

  text(name, row) {
    const column = this.columns[name];
    return column.texts[column.rows[row]];
  }

  number(name, row) {
    return this.numbers[name][row];
  }

  isText(name) {
    return !(name in this.numbers);
  }

  values(name, rows) {
    const found = [];
    for (const row of rows) if (!Number.isNaN(this.numbers[name][row])) found.push(this.numbers[name][row]);
    return found;
  }

  all() {
    return Uint32Array.from({ length: this.length }, (_, i) => i);
  }

  // Rows where a text column matches; each different text is looked at once.
  matching(name, test) {
    const column = this.columns[name];
    const good = column.texts.map(test);
    return (row) => good[column.rows[row]];
  }

  order(rows, name, down) {
    const sign = down ? -1 : 1;
    if (this.isText(name)) {
      const column = this.columns[name];
      const sorted = column.texts.map((text, i) => [text, i]).sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
      const rank = new Float64Array(column.texts.length);
      sorted.forEach(([, i], place) => { rank[i] = place; });
      return rows.sort((a, b) => sign * (rank[column.rows[a]] - rank[column.rows[b]]) || a - b);
    }
    const values = this.numbers[name];
    return rows.sort((a, b) => {
      const x = values[a];
      const y = values[b];
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a - b; // unknown ones last
      return sign * (x - y) || a - b;
    });
  }
}
