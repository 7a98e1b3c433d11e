// Long lists: only what is near the window exists. Heights are guessed until they were seen.

class Heights {
  constructor(length, guess) {
    this.guess = guess;
    this.resize(length);
  }

  resize(length) {
    const before = this.heights;
    this.heights = new Float32Array(length).fill(this.guess);
    if (before) this.heights.set(before.subarray(0, Math.min(before.length, length)));
    this.tree = new Float64Array(length + 1);
    for (let i = 1; i <= length; i += 1) {
      this.tree[i] += this.heights[i - 1];
      const up = i + (i & -i);
      if (up <= length) this.tree[up] += this.tree[i];
    }
    this.bit = 1;
    while (this.bit * 2 <= length) this.bit *= 2;
  }

  set(index, height) {
    const change = height - this.heights[index];
    this.heights[index] = height;
    for (let i = index + 1; i < this.tree.length; i += i & -i) this.tree[i] += change;
  }

  top(index) {
    let total = 0;
    for (let i = index; i > 0; i -= i & -i) total += this.tree[i];
    return total;
  }

  at(y) {
    let place = 0;
    let left = y;
    for (let bit = this.bit; bit > 0; bit >>= 1) {
      if (place + bit < this.tree.length && this.tree[place + bit] <= left) {
        place += bit;
        left -= this.tree[place];
      }
    }
    return Math.min(place, this.heights.length - 1);
  }
}

class VirtualList {
  // `make(i)` gives the element of an item. `fixed`: all are as high as the guess.
  constructor(box, { length, guess, make, fixed = false, margin = 900, after = null }) {
    Object.assign(this, { box, make, fixed, margin, after, length });
    this.heights = new Heights(length, guess);
    this.alive = new Map();
    box.classList.add("virtual");
    this.onScroll = () => this.plan();
    window.addEventListener("scroll", this.onScroll, { passive: true });
    window.addEventListener("resize", this.onScroll);
    if (!fixed) this.sizes = new ResizeObserver((entries) => this.measured(entries));
    this.draw();
  }

  plan() {
    if (this.planned) return;
    this.planned = requestAnimationFrame(() => { this.planned = 0; this.draw(); });
  }

  get offset() {
    return this.box.getBoundingClientRect().top + window.scrollY;
  }

  resize(length) {
    if (length === this.length) return;
    this.length = length;
    this.heights.resize(length);
    for (const [i, element] of this.alive) if (i >= length) this.drop(i, element);
    this.draw();
  }

  drop(index, element) {
    if (this.sizes) this.sizes.unobserve(element);
    element.remove();
    this.alive.delete(index);
  }

  draw() {
    this.box.style.height = `${this.heights.top(this.length)}px`;
    if (!this.length) return;
    const top = window.scrollY - this.offset;
    const first = this.heights.at(Math.max(0, top - this.margin));
    const last = this.heights.at(Math.max(0, top + window.innerHeight + this.margin));
    const focused = document.activeElement;
    for (const [i, element] of this.alive) {
      if ((i < first || i > last) && !element.contains(focused)) this.drop(i, element);
    }
    let before = null;
    for (let i = first; i <= last; i += 1) {
      let element = this.alive.get(i);
      if (!element) {
        element = this.create(i);
        if (before) before.after(element); else this.box.prepend(element);
      }
      before = element;
      element.style.transform = `translateY(${this.heights.top(i)}px)`;
    }
    if (this.after) this.after(first, last);
  }

  create(i) {
    const element = this.make(i);
    element.dataset.index = i;
    element.classList.add("item");
    this.alive.set(i, element);
    if (this.sizes) this.sizes.observe(element);
    return element;
  }

  // What stands at the top of the window stays there, whatever grows above it.
  measured(entries) {
    const top = window.scrollY - this.offset;
    const anchor = this.heights.at(Math.max(0, top));
    const shift = top - this.heights.top(anchor);
    let changed = false;
    for (const entry of entries) {
      const index = Number(entry.target.dataset.index);
      const height = entry.borderBoxSize ? entry.borderBoxSize[0].blockSize : entry.target.offsetHeight;
      if (this.alive.get(index) !== entry.target || !height || Math.abs(this.heights.heights[index] - height) < 0.5) continue;
      this.heights.set(index, height);
      changed = true;
    }
    if (!changed) return;
    this.box.style.height = `${this.heights.top(this.length)}px`;
    if (this.aim !== undefined) {
      this.scrollTo(this.aim, this.aimed);
    } else if (top > 0) {
      const now = this.heights.top(anchor) + shift + this.offset;
      if (Math.abs(now - window.scrollY) > 1) window.scrollTo({ top: now, behavior: "instant" });
    }
    this.draw();
  }

  // Keeps aiming for a moment, while items on the way are measured for the first time.
  scrollTo(index, margin = 120) {
    this.aim = index;
    this.aimed = margin;
    clearTimeout(this.settle);
    this.settle = setTimeout(() => { this.aim = undefined; }, 400);
    window.scrollTo({ top: Math.max(0, this.heights.top(index) + this.offset - margin), behavior: "instant" });
    this.draw();
  }

  remake(index) {
    const old = this.alive.get(index);
    if (!old) return;
    const focused = old.contains(document.activeElement);
    if (this.sizes) this.sizes.unobserve(old);
    const element = this.make(index);
    element.dataset.index = index;
    element.classList.add("item");
    element.style.transform = old.style.transform;
    old.replaceWith(element);
    this.alive.set(index, element);
    if (this.sizes) this.sizes.observe(element);
    if (focused) element.focus({ preventScroll: true });
  }

  remakeAll() {
    for (const index of [...this.alive.keys()]) this.remake(index);
  }

  dispose() {
    cancelAnimationFrame(this.planned);
    clearTimeout(this.settle);
    window.removeEventListener("scroll", this.onScroll);
    window.removeEventListener("resize", this.onScroll);
    if (this.sizes) this.sizes.disconnect();
  }
}
