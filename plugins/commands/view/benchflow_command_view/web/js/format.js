// Numbers for people.

const has = (value) => value !== null && value !== undefined && Number.isFinite(value);

function duration(seconds) {
  if (!has(seconds)) return "";
  if (seconds < 0.0005) return "0 s";
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60);
  return minutes < 60 ? `${minutes} min ${whole % 60} s` : `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

function percent(ratio, digits = 1) {
  return has(ratio) ? `${(ratio * 100).toFixed(digits)}%` : "–";
}

function money(value) {
  if (value === 0) return "$0";
  return has(value) ? `$${value < 0.1 ? value.toFixed(4) : value.toFixed(2)}` : "";
}

function amount(value) {
  if (!has(value)) return "";
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (value >= size) return `${(value / (unit === "k" ? 1e3 : size)).toPrecision(3)}${unit}`;
  }
  return String(Math.round(value * 1000) / 1000);
}

function bytes(value) {
  if (!has(value)) return "";
  if (value < 1000) return `${value} B`;
  return value < 1e6 ? `${(value / 1e3).toFixed(1)} kB` : `${(value / 1e6).toFixed(1)} MB`;
}

function when(seconds) {
  return has(seconds) ? new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ") : "";
}

function count(number, one, many) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many || `${one}s`}`;
}

function sum(values) {
  let total = 0;
  let any = false;
  for (const value of values) if (has(value)) { total += value; any = true; }
  return any ? total : null;
}
