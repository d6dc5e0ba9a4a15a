async function think(level, thenPlay) {
  stop();
  const now = turn, ply = game.ply, mover = shown.movers.at(-1), seconds = Number($("seconds").value);
  thinking = new AbortController();
  const body = {...here(), level, simulations: thenPlay || level !== "search" ? Number($("strength").value) : about.most};
  const limits = [seconds > 0 ? seconds : Infinity, clock.limit ? Math.max(.05, clock.left[mover] / 20) : Infinity];
  if (thenPlay && Math.min(...limits) < Infinity) body.seconds = Math.min(...limits);
  let last = null;
  const isAgent = thenPlay && !people(mover) && game.ply === game.actions.length;  // else it is a hint
  if (isAgent) clock.turn(mover);
  try {
    // While its search is compiled, the agent's clock stands.
    for await (const answer of linesOf(await ask("think", body, thinking.signal), () => { if (isAgent && now === turn) clock.turn(null); })) {
      if (now !== turn) return null;
      if (isAgent) clock.turn(mover);
      if (now !== turn) return null;  // its time ran out just now
      reveal(answer, mover, ply);
      last = answer;
    }
  } catch (error) {
    if (now === turn) { complain(error); if (isAgent) clock.turn(null); }
    return null;
  }
  if (now !== turn) return null;
  thinking = null;
  return last;
}
function reveal(answer, mover, ply) {
  const share = answer.value === null ? undefined : (1 + (mover ? -answer.value : answer.value)) / 2;
  if (share !== undefined) { expected.set(ply, share); bar(share); graph(); }
  draw(answer.svg, false);
  if (thoughtAt !== ply) { $("variation").textContent = ""; $("tree").replaceChildren(); }  // of another position
  thoughtAt = ply;
  const count = answer.simulations ? `${answer.simulations.toLocaleString("en")} simulations` : isTrained ? "the network alone" : about.agent;
  const chance = answer.value === null ? "" : `: ${answer.proven ? ["a certain loss", "a certain draw", "a certain win"][Math.sign(answer.value) + 1] : `${Math.round(50 + 50 * answer.value)}%`} for ${about.players[mover]}`;
  $("thought").textContent = count + chance;
  $("policy").replaceChildren(...answer.policy.map(each => {
    const line = document.createElement("tr");
    element("td", each.move, line);
    const share = element("td", `${Math.round(100 * each.share)}%`, line); share.className = "n";
    const cell = element("td", undefined, line), meter = element("div", undefined, cell);
    cell.style.width = "55%"; meter.className = "meter"; meter.style.width = `${100 * each.share}%`;
    return line;
  }));
  if (answer.variation) { $("variation").textContent = answer.variation.length ? `It expects ${answer.variation.slice(0, 12).join(" ")}` : ""; }
  if (answer.tree && !$("tree").querySelector("details[open]")) $("tree").replaceChildren(...answer.tree.below.map(branch));
}
function branch(node) {
  const words = `${node.move}: ${node.visits} visit${node.visits === 1 ? "" : "s"}, ${node.value >= 0 ? "+" : "−"}${Math.abs(node.value).toFixed(2)}`;
  if (!node.below.length) { const leaf = element("div", words); leaf.className = "tree leaf"; return leaf; }
  const box = document.createElement("details");
  box.className = "tree";
  element("summary", words, box);
  box.addEventListener("toggle", () => { if (box.open && box.children.length === 1) box.append(...node.below.map(branch)); });
  return box;
}
async function reply(level) {
  const ply = game.ply, both = $("player0").value !== "person" && $("player1").value !== "person", began = performance.now();
  const answer = await think(level, true);
  if (!answer) return;
  const now = turn;
  clock.turn(null);
  if (both) await wait(Math.max(0, 500 - (performance.now() - began)));
  if (now !== turn || game.ply !== ply) return;
  game.actions.length = ply;
  game.actions.push(answer.action);
  game.ply += 1;
  knock();
  show();
}

const latest = () => { for (let ply = game.ply; ply >= 0; ply -= 1) if (expected.has(ply)) return expected.get(ply); };
// The side at the bottom of the bar and of the graph: the person's, if there is one.
const own = () => $("player0").value !== "person" && $("player1").value === "person" ? 1 : 0;
const ofOwn = share => own() ? 1 - share : share;
function bar(share) {
  const [top, bottom] = $("bar").children, known = share === undefined ? .5 : ofOwn(share), percent = Math.round(100 * known);
  top.style.flexGrow = 1 - known; bottom.style.flexGrow = known;
  top.dataset.seat = 1 - own(); bottom.dataset.seat = own();
  const words = share === undefined ? [" below, ", " above"] : [` ${percent}%, `, ` ${100 - percent}%`];
  $("shares").replaceChildren(...named(own()), words[0], ...named(1 - own()), words[1]);
  $("bar").setAttribute("aria-label", share === undefined ? "expected result: not known" : `expected result: ${$("shares").textContent}`);
}
function graph() {
  const last = Math.max(game.actions.length, 1), x = ply => 100 * ply / last;
  const known = [...expected].filter(([ply]) => ply <= game.actions.length).sort((a, b) => a[0] - b[0]);
  const points = known.map(([ply, share]) => `${x(ply)},${49 - 48 * ofOwn(share)}`).join(" "), fixed = 'vector-effect="non-scaling-stroke"';
  const [start, stop] = known.length > 1 ? [x(known[0][0]), x(known.at(-1)[0])] : [0, 0], colors = ["var(--first)", "var(--second)"];
  // As the bar: the own color below the line, the other side's above it.
  const area = (edge, seat) => known.length > 1 ? `<polygon points="${start},${edge} ${points} ${stop},${edge}" fill="${colors[seat]}"/>` : "";
  $("graph").innerHTML = area(0, 1 - own()) + area(50, own()) + `<line x1="0" x2="100" y1="25" y2="25" stroke="var(--faint)" stroke-dasharray="3 3" ${fixed}/>` +
    `<line x1="${x(game.ply)}" x2="${x(game.ply)}" y1="0" y2="50" stroke="var(--mark)" ${fixed}/>` +
    `<polyline points="${points.includes(" ") ? points : `${points} ${points}`}" fill="none" stroke="var(--mark)" stroke-width="${points.includes(" ") ? 2 : 5}" stroke-linecap="round" stroke-linejoin="round" ${fixed}/>` +
    [...losses].filter(([, loss]) => loss >= .1).map(([ply, loss]) => `<line x1="${x(ply + 1)}" x2="${x(ply + 1)}" y1="50" y2="${50 - 25 * Math.min(1, loss / 2) - 3}" stroke="var(--wrong)" stroke-width="3" ${fixed}/>`).join("");
}
$("graph").addEventListener("click", event => { const box = $("graph").getBoundingClientRect(); jump(Math.round((event.clientX - box.left) / box.width * game.actions.length)); });
const points = loss => `${(loss / 2).toFixed(2)} ${loss < 2 ? "of a point" : "points"}`;
let names = [];
function list() {
  // A position lists the moves up to it; later ones stay as they were.
  names = [...shown.moves, ...names.slice(shown.moves.length, game.actions.length)];
  replace($("moves"), names.map((name, place) => {
    const item = document.createElement("li");
    element("span", `${place + 1}.`, item).className = "number";
    const button = element("button", name, item);
    button.type = "button";
    if (place + 1 === game.ply) button.setAttribute("aria-current", "true");
    const loss = losses.get(place);
    if (loss >= .1) { button.classList.add("bad"); button.title = `gives away ${points(loss)}`; }
    button.addEventListener("click", () => jump(place + 1));
    return item;
  }));
  const current = $("moves").querySelector("[aria-current]");
  if (current) $("moves").scrollTop = current.offsetTop - $("moves").offsetTop - 40;
}
// The moves of the book in the position shown: how often, and the points for those who played them.
function book() {
  $("book").hidden = !about.book;
  $("none").textContent = shown.book.length ? "" : `Nobody chose a move here in the ${about.book.toLocaleString("en")} games of the book.`;
  $("book").querySelector("tbody").replaceChildren(...shown.book.slice(0, 8).map(each => {
    const line = document.createElement("tr");
    element("td", each.move, line);
    element("td", `${each.games.toLocaleString("en")} game${each.games === 1 ? "" : "s"}`, line).className = "games";
    element("td", `${Math.round(100 * each.points)}%`, line).className = "n";
    const cell = element("td", undefined, line), meter = element("div", undefined, cell);
    cell.style.width = "40%"; meter.className = "meter"; meter.style.width = `${100 * each.points}%`;
    return line;
  }));
}
// What a review says of the move that was played in the position shown.
function verdict() {
  const loss = losses.get(game.ply), find = action => shown.legal.find(each => each.action === action);
  const played = find(game.actions[game.ply]), best = find(better.get(game.ply)), isBad = loss >= .1 && played && best && played !== best;
  $("verdict").textContent = isBad ? `${game.ply + 1}. ${played.move} gives away ${points(loss)}; ${best.move} is better` : "";
  arrows(isBad ? [["played", played.squares], ["better", best.squares]] : []);
  const kinds = [["wins", 1], ["draws", 0], ["loses", -1]].map(([word, sign]) => [word, shown.legal.filter(each => Math.sign(each.exact) === sign).map(each => each.move)]);
  const told = kinds.filter(([, moves]) => moves.length).map(([word, moves]) => `${moves.join(" ")} ${moves.length > 1 ? word.slice(0, -1) : word}`);
  $("exact").textContent = told.length ? `With best play: ${told.join("; ")}` : "";
}
$("review").addEventListener("click", async () => {
  if (!arrived()) return;
  stop();
  $("analyze").setAttribute("aria-pressed", "false");
  const now = turn;
  thinking = new AbortController();
  losses = new Map();
  let exactly = game.actions.length > 0;
  try {
    const body = {start: game.start, actions: game.actions, simulations: Number($("strength").value)};
    for await (const answer of linesOf(await ask("analyze", body, thinking.signal))) {
      if (now !== turn) return;
      losses.set(answer.ply, answer.loss);
      better.set(answer.ply, answer.best);
      exactly &&= answer.exact;
      const mover = answer.mover;
      expected.set(answer.ply, (1 + (mover ? -answer.value : answer.value)) / 2);
      $("reviewed").textContent = `${answer.ply + 1} of ${game.actions.length} moves reviewed`;
      list(); graph(); verdict();
    }
    const given = [...losses].filter(([, loss]) => loss >= .1).sort((a, b) => b[1] - a[1]), all = given.reduce((sum, [, loss]) => sum + loss, 0);
    if (now !== turn) return;
    thinking = null;
    const counted = given.length ? `${given.length} of ${game.actions.length} moves ${given.length > 1 ? "give" : "gives"} away ${points(all)}` : "No move gives away value";
    $("reviewed").textContent = `${counted}${exactly ? " (exact)" : ""}. `;
    if (given.length) {
      const [ply, loss] = given[0], worst = element("button", `The worst: ${ply + 1}. ${names[ply]}, ${points(loss)}`, $("reviewed"));
      worst.type = "button"; worst.className = "b";
      worst.addEventListener("click", () => jump(ply));
    }
  } catch (error) { complain(error); }
});
