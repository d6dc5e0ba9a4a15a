// The server's answers without a server, in a worker: rules, network and search are the programs of exhibition.json.
const NAMES = "abcdefghijklmnopqrstuvwxyz", SHOWN_MOVES = 8, MILLISECONDS_BETWEEN_UPDATES = 100;
const STORED = {f32: Float32Array, bf16: Uint16Array, int32: Int32Array, uint32: Uint32Array, int16: Int16Array, uint16: Uint16Array, int8: Int8Array, uint8: Uint8Array, i1: Uint8Array};
const pause = () => new Promise(done => setTimeout(done));
const argmax = array => array.reduce((best, each, place) => each > array[best] ? place : best, 0);
let about, run, positions = new Map(), questions = 0;

const opened = (async () => {
  const [told, stored] = await Promise.all(["exhibition.json", "weights.bin"].map(async name => {
    const response = await fetch(name);
    if (!response.ok) throw new Error(`${name}: the web server answers ${response.status}`);
    return name.endsWith(".json") ? response.json() : response.arrayBuffer();
  }));
  about = told;
  let at = 0;
  const arrays = about.weights.map(({type, size}) => {
    const array = new STORED[type](stored, at, size);
    at += Math.ceil(array.byteLength / 4) * 4;
    return type === "bf16" ? new Float32Array(Uint32Array.from(array, half => half << 16).buffer) : array;
  });
  const params = about.search.params.map(number => arrays[number]), {look, step} = about.rules, {network, empty, search} = about.search;
  const fixed = program => { const prepared = prepare(program, params.length); return (...inputs) => prepared([...params, ...inputs.flat()]); };
  const free = program => { const prepared = prepare(program, 0); return (...inputs) => prepared(inputs.flat()); };
  run = {look: free(look), step: free(step), empty: free(empty), network: fixed(network), search: fixed(search)};
  positions.set("", seen(about.start.map(number => arrays[number])));
})();

// A position: its arrays, and what the rules say of it.
function seen(state) {
  const [mask, squares, cells, [mover], [over], rewards] = run.look(state), clicks = squares.length / mask.length;
  const legal = [...mask.keys()].filter(action => mask[action]).map(action => {
    const own = [...squares.slice(action * clicks, (action + 1) * clicks)].filter(square => square >= 0);
    return {action, squares: own, move: about.notation[action].replace(/{(\d)}/g, (_, place) => nameOf(own[place]))};
  });
  return {state, legal: over ? [] : legal, cells, mover, over: Boolean(over), rewards: [...rewards]};
}
function nameOf(square) {
  const {rows, columns, rows_from_top: fromTop} = about.look, row = Math.floor(square / columns);
  return NAMES[square % columns] + (fromTop ? row + 1 : rows - row);
}
// The positions of a game, one more than its actions.
function replay({start, actions}) {
  if (start !== null || !Array.isArray(actions)) throw new Error("a game begins at the start here");
  const all = [positions.get("")];
  actions.forEach((action, ply) => {
    const key = actions.slice(0, ply + 1).join(), before = all.at(-1);
    if (!positions.has(key)) {
      if (!before.legal.some(each => each.action === action)) throw new Error(`action ${ply + 1}: ${action} is not a legal action there`);
      if (positions.size > 4096) positions = new Map([["", positions.get("")]]);
      positions.set(key, seen(run.step(before.state, Int32Array.of(action))));
    }
    all.push(positions.get(key));
  });
  return all;
}
const movesOf = (all, actions) => actions.map((action, ply) => all[ply].legal.find(each => each.action === action).move);

const escaped = text => text.replace(/[&<"]/g, sign => `&#${sign.charCodeAt(0)};`);
function picture(all, actions, policy = []) {
  const {head, caption, common, cells} = about.look, position = all.at(-1), layers = {board: "", marks: "", pieces: "", signs: ""};
  const put = parts => { for (const [layer, text] of Object.entries(parts)) layers[layer] += text; };
  put(common);
  position.cells.forEach((number, square) => put(cells[square][number] || {}));
  const last = actions.length ? all.at(-2).legal.find(each => each.action === actions.at(-1)).squares : [];
  for (const square of last) layers.signs += ring(square, "last", 7, 1);
  for (const {squares, share} of policy.slice(0, 5)) layers.signs += hint(squares, share, policy[0].share);
  const [first, second] = position.rewards, seat = position.over ? (first >= second ? 0 : 1) : position.mover;
  const name = about.players[seat], isDraw = position.over && first === second;
  const status = isDraw ? "Draw" : `${name[0].toUpperCase()}${name.slice(1)} ${position.over ? "won" : "to move"}`;
  layers.signs += caption.replaceAll("{{status}}", status).replaceAll("{{color}}", isDraw ? "faint" : ["first", "second"][seat]);
  const label = escaped(`${about.game}: ${status}. Moves: ${movesOf(all, actions).join(" ") || "none"}`);
  return `${head.replace("<svg ", `<svg aria-label="${label}" `)}${Object.entries(layers).map(([layer, text]) => `<g class="${layer}">${text}</g>`).join("")}</svg>`;
}
function centerOf(square) {
  const {columns, down: [across, down]} = about.look, row = Math.floor(square / columns);
  return [100 * (square % columns) + 50 + across * row, 50 + down * row];
}
function ring(square, color, width, opacity) {
  const [x, y] = centerOf(square);
  return `<circle cx="${x}" cy="${y}" r="45" fill="none" stroke="var(--${color})" stroke-width="${width}" opacity="${opacity}"/>`;
}
// A likely move: its last square, or a line from the first square to the second one.
function hint(squares, share, most) {
  if (!squares.length || share < .01) return "";
  const [x, y] = centerOf(squares[Math.min(1, squares.length - 1)]), opacity = (.35 + .5 * share / most).toFixed(2);
  const [x0, y0] = centerOf(squares[0]), line = squares.length > 1 ? `<path d="M${x0} ${y0}L${x} ${y}" stroke="var(--policy)" stroke-width="9" stroke-linecap="round" opacity="${opacity}"/>` : "";
  const text = `<text x="${x}" y="${y}" font-size="19" dy="0.35em" text-anchor="middle" fill="var(--on-policy)" font-weight="600">${Math.round(100 * share)}%</text>`;
  return `${line}<circle cx="${x}" cy="${y}" r="23" fill="var(--policy)" stroke="var(--on-policy)" stroke-width="2" opacity="${opacity}"/>${text}`;
}
function shown(all, actions, policy) {
  const {legal} = all.at(-1), likely = legal.map(each => ({...each, share: policy[each.action]})).filter(each => each.share > 0).sort((a, b) => b.share - a.share).slice(0, SHOWN_MOVES);
  return {svg: picture(all, actions, likely), policy: likely.map(({action, move, share}) => ({action, move, share}))};
}

// Simulations in chunks, until there are enough, the time is over or the value is proven.
async function* search(position, {simulations, seconds}, isWanted) {
  const began = performance.now();
  let tree = run.empty(position.state), told = -Infinity;
  for (let done = about.chunk; ; done += about.chunk) {
    const [[action], policy, [value], [low, high], ...grown] = run.search(Uint32Array.of(questions, done), position.state, tree);
    tree = grown;
    const proven = low === high, now = performance.now(), last = proven || done >= simulations || now - began >= 1000 * (seconds ?? Infinity);
    if (last || now - told >= MILLISECONDS_BETWEEN_UPDATES) { told = now; yield {simulations: done, action, policy, value, proven, last}; }
    if (last) return;
    await pause();
    if (!isWanted()) return;
  }
}
const ANSWERS = {
  async *position({start, actions}) {
    const all = replay({start, actions}), {legal, over} = all.at(-1), moves = movesOf(all, actions);
    const rewards = [0, 1].map(seat => all.slice(1).reduce((sum, each) => sum + each.rewards[seat], 0));
    yield {svg: picture(all, actions), text: moves.join(" "), legal, book: [], moves, movers: all.map(each => each.mover), over, rewards};
  },
  async *think({start, actions, level, simulations, seconds}, isWanted) {
    const all = replay({start, actions}), position = all.at(-1);
    if (position.over) throw new Error("the game is over");
    if (level !== "search") {
      const [policy, [value]] = run.network(position.state);
      let action = argmax(policy);
      if (about.temperatures[level]) {
        const weights = policy.map(share => share ** (1 / about.temperatures[level]));
        let rest = Math.random() * weights.reduce((sum, weight) => sum + weight);
        action = position.legal.map(each => each.action).find(each => (rest -= weights[each]) <= 0) ?? action;
      }
      yield {simulations: 0, value, action, last: true, ...shown(all, actions, policy)};
      return;
    }
    for await (const {policy, ...update} of search(position, {simulations, seconds}, isWanted)) yield {...update, ...shown(all, actions, policy)};
  },
  async *analyze({start, actions, simulations}, isWanted) {
    const all = replay({start, actions});
    let before = 0, best = null;
    for (const [ply, position] of all.entries()) {
      let value = 0, action = null;
      if (!position.over) for await (const update of search(position, {simulations}, isWanted)) ({value, action} = update);
      if (!isWanted()) return;
      if (ply) {
        const {mover} = all[ply - 1], sign = position.over ? 0 : position.mover === mover ? 1 : -1;
        yield {ply: ply - 1, mover, value: before, loss: Math.max(0, before - position.rewards[mover] - sign * value), best};
      }
      [before, best] = [value, action];
    }
  },
};
const dropped = new Set();
onmessage = async ({data: {id, path, body, drop}}) => {
  if (drop) { dropped.add(id); return; }
  questions += 1;
  try {
    if (!run && path !== "position") postMessage({id, answer: {waiting: "The agent is being loaded"}});
    await opened;
    for await (const answer of ANSWERS[path](body, () => !dropped.has(id))) postMessage({id, answer});
    postMessage({id, done: true});
  } catch (error) { postMessage({id, error: error.message}); }
  dropped.delete(id);
};
