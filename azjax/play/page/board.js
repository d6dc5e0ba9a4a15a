const placeOf = piece => /translate\(([-\d.]+) ([-\d.]+)\)/.exec(piece.getAttribute("transform") || "");
// Pieces that two pictures share slide to their new squares; others fade in or out.
function draw(svg, animate) {
  const box = $("picture");
  $("table").hidden = svg === null;
  if (svg === null) return;
  const keyOf = piece => piece.innerHTML;
  const before = [...box.querySelectorAll("g.pieces > g")].map(piece => ({key: keyOf(piece), at: piece.getAttribute("transform"), piece}));
  const signs = new Set([...box.querySelectorAll("g.signs > path")].map(sign => sign.outerHTML));
  box.innerHTML = svg;
  recolor();
  lift();
  const [, , width, height] = box.firstElementChild.getAttribute("viewBox").split(" ").map(Number);
  $("board").style.setProperty("--ratio", width / height);
  if (!animate || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const now = [...box.querySelectorAll("g.pieces > g")];
  const fresh = now.filter(piece => { const old = before.findIndex(each => each.key === keyOf(piece) && each.at === piece.getAttribute("transform")); if (old >= 0) before.splice(old, 1); return old < 0; });
  for (const piece of fresh) {
    const to = placeOf(piece);
    if (!to) continue;
    const old = before.findIndex(each => each.key === keyOf(piece) && placeOf(each.piece));
    const from = old >= 0 ? placeOf(before.splice(old, 1)[0].piece) : piece.dataset.from ? ["", ...piece.dataset.from.split(" ")] : null;
    const end = `translate(${to[1]}px, ${to[2]}px)`;
    if (from) piece.animate([{transform: `translate(${from[1]}px, ${from[2]}px)`}, {transform: end}], {duration: 260, easing: "ease-in-out"});
    else piece.animate([{opacity: 0}, {opacity: 1}], {duration: 200});
  }
  const layer = box.querySelector("g.pieces");
  for (const {piece} of before) {
    if (!layer) break;
    layer.append(piece);
    piece.animate([{opacity: 1}, {opacity: 0}], {duration: 350}).finished.then(() => piece.remove(), () => piece.remove());
  }
  const isNew = sign => fresh.length && !signs.has(sign.outerHTML);
  for (const sign of [...box.querySelectorAll("g.signs > path")].filter(isNew)) sign.animate([{opacity: 0}, {opacity: 0, offset: .4}, {opacity: 1}], {duration: 450});
}
// Pictures follow the color scheme of the system; the page may show the other one.
function recolor() {
  const dark = document.documentElement.hasAttribute("data-dark");
  for (const style of document.querySelectorAll("#picture svg > style, #examples svg > style")) {
    style.textContent = style.textContent.replace(/@media\s*(\(prefers-color-scheme:dark\)|not all|all)/g, dark ? "@media all" : "@media not all");
  }
  // The sides have the colors of their pieces everywhere.
  const svg = $("picture").querySelector("svg");
  for (const role of ["first", "second"]) {
    const color = svg && getComputedStyle(svg).getPropertyValue(`--${role}`).trim();
    if (color) document.documentElement.style.setProperty(`--${role}`, color);
  }
}

function squares() {
  const svg = $("picture").querySelector("svg"), box = $("squares"), made = [];
  choices();
  if (!about.board || !svg || !svg.dataset.columns) { box.replaceChildren(); return; }
  const reachable = Math.max(0, [...box.children].findIndex(button => button.tabIndex === 0));
  const [left, top, width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const rows = Number(svg.dataset.rows), columns = Number(svg.dataset.columns);
  const [across, down] = (svg.dataset.down || "0 100").split(" ").map(Number);
  for (let square = 0; square < rows * columns; square += 1) {
    const button = document.createElement("button"), row = Math.floor(square / columns), column = square % columns;
    button.type = "button";
    button.dataset.square = square;
    button.setAttribute("aria-label", String.fromCharCode(97 + column) + (about.rows_from_top ? row + 1 : rows - row));
    Object.assign(button.style, {left: `${100 * (100 * column + across * row - left) / width}%`, top: `${100 * (down * row - top) / height}%`,
      width: `${10000 / width}%`, height: `${10000 / height}%`});
    button.tabIndex = square === reachable ? 0 : -1;
    made.push(button);
  }
  replace(box, made);
  mark();
}
// A game without a board is played by a list of its legal moves, and so are moves without squares, such as a pass.
function choices() {
  const listed = shown.over ? [] : about.board ? going([]).filter(each => !each.squares.length) : shown.legal;
  $("choices").hidden = !listed.length;
  replace($("choices"), listed.map(each => {
    const button = element("button", each.move);
    button.type = "button"; button.className = "b"; button.disabled = !mine();
    button.addEventListener("click", () => play(each.action));
    return button;
  }));
}
const arrived = () => shown && shown.asked.start === game.start && shown.asked.actions.length === game.ply && shown.asked.actions.every((action, ply) => action === game.actions[ply]);
const mine = () => arrived() && !shown.over && !game.result && game.ply === game.actions.length && $(`player${shown.movers.at(-1)}`).value === "person";
const going = squares => !mine() ? [] : shown.legal.filter(each => squares.every((square, place) => each.squares[place] === square));
function mark() {
  const next = new Set(edits ? [...$("squares").children].map(button => Number(button.dataset.square)) : going(held).map(each => each.squares[held.length]));
  for (const button of $("squares").children) {
    const square = Number(button.dataset.square);
    button.classList.toggle("can", next.has(square) || held.includes(square));
    button.classList.toggle("held", held.includes(square));
    button.classList.toggle("target", held.length > 0 && next.has(square));
    button.setAttribute("aria-pressed", held.includes(square));
  }
  lift();
  tell();
}
// The center of each square of a picture, in its units.
function centers(svg) {
  const columns = Number(svg.dataset.columns), [across, down] = (svg.dataset.down || "0 100").split(" ").map(Number);
  return square => { const row = Math.floor(square / columns); return [100 * (square % columns) + 50 + across * row, 50 + down * row]; };
}
// A piece stands on its new square while one chooses what follows, and until the server has answered.
function lift() {
  const svg = $("picture").querySelector("svg"), columns = svg && Number(svg.dataset.columns);
  if (!columns || edits) return;
  const center = centers(svg);
  const pieces = [...svg.querySelectorAll("g.pieces > g")].filter(placeOf);
  for (const piece of pieces) if (piece.dataset.home) { piece.setAttribute("transform", piece.dataset.home); delete piece.dataset.home; }
  if (held.length < 2) return;
  const [from, to] = held.map(center), [x, y] = [to[0] - from[0], to[1] - from[1]];
  const piece = pieces.find(each => Math.hypot(placeOf(each)[1] - from[0], placeOf(each)[2] - from[1]) < 50);
  if (!piece) return;
  piece.dataset.home = piece.getAttribute("transform");
  piece.setAttribute("transform", `translate(${Number(placeOf(piece)[1]) + x} ${Number(placeOf(piece)[2]) + y})`);
}
// The move that was played here and gave value away, and a better one.
function arrows(moves) {
  const svg = $("picture").querySelector("svg"), columns = svg && Number(svg.dataset.columns), layer = $("arrows");
  layer.replaceChildren();
  if (!columns) return;
  layer.setAttribute("viewBox", svg.getAttribute("viewBox"));
  const center = centers(svg);
  layer.innerHTML = moves.map(([name, squares]) => {
    const points = squares.map(center), [x, y] = points[points.length > 1 ? 1 : 0] || [0, 0];
    if (!points.length) return "";
    if (points.length === 1) return `<g class="${name}"><circle cx="${x}" cy="${y}" r="44"/></g>`;
    const [x0, y0] = points[0], length = Math.hypot(x - x0, y - y0), [u, v] = [(x - x0) / length, (y - y0) / length];
    const tip = [x - 12 * u, y - 12 * v], wing = side => `${tip[0] - 26 * u - side * 16 * v},${tip[1] - 26 * v + side * 16 * u}`;
    const rest = points.slice(2).map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="30"/>`).join("");
    return `<g class="${name}"><path d="M${x0 + 18 * u},${y0 + 18 * v}L${tip}M${wing(1)}L${tip}L${wing(-1)}"/>${rest}</g>`;
  }).join("");
}
function touch(square) {
  if (!edits && !arrived()) return;
  if (edits) { place([square]); return; }
  const deeper = going([...held, square]);
  if (deeper.length) held.push(square);
  else if (held.at(-1) === square) held.pop();
  else held = going([square]).length ? [square] : [];
  const whole = going(held).filter(each => each.squares.length === held.length);
  if (held.length && whole.length) play(whole[0].action); else mark();
}
function place(squares) {
  edits = [...edits.filter(([square]) => !squares.includes(square)), ...squares.map(square => [square, piece()])];
  edited();
}
const piece = () => Number($("pieces").querySelector("[aria-checked=true]").dataset.piece);
async function edited() {
  stop();
  $("placed").disabled = true;
  const now = turn;
  try {
    const answer = await (await ask("edit", {...(base === null ? here() : {start: base, actions: []}), pieces: edits, mover: Number($("mover").value)})).json();
    if (now !== turn) return;
    draw(answer.svg, true);
    squares();
    $("text").textContent = answer.text;
    $("message").textContent = answer.wrong || "";
    $("placed").disabled = Boolean(answer.wrong);
    $("status").textContent = "Placing pieces";
    // A possible position is the base of further edits.
    if (!answer.wrong) { $("mover").value = answer.mover; base = answer.text; edits = []; }
  } catch (error) { if (now === turn) complain(error); }
}
function choose(button) {
  for (const each of $("pieces").children) { each.setAttribute("aria-checked", each === button); each.tabIndex = each === button ? 0 : -1; }
}
function play(action) {
  if (edits || !mine()) return;
  clock.turn(null);
  if (game.result) return;  // the time ran out just now
  game.actions.length = game.ply;
  game.actions.push(action);
  game.ply += 1;
  forget(game.ply);
  mark();
  knock();
  show();
}
function forget(ply) {
  for (const known of [...expected.keys()]) if (known >= ply) expected.delete(known);
  losses = new Map([...losses].filter(([known]) => known < ply - 1));
  for (const known of [...better.keys()]) if (known >= ply - 1) better.delete(known);
  $("reviewed").textContent = "";
}
let pressed = null, dropped = false;
$("squares").addEventListener("pointerdown", event => { const button = event.target.closest("button"); pressed = button && Number(button.dataset.square); dropped = false; });
addEventListener("pointerup", event => {
  const under = document.elementFromPoint(event.clientX, event.clientY), button = under && under.closest("#squares button");
  if (pressed !== null && button && Number(button.dataset.square) !== pressed) {
    // Dragged from one square to another.
    if (held.at(-1) !== pressed) touch(pressed);
    touch(Number(button.dataset.square));
    dropped = true;
  }
  pressed = null;
});
$("squares").addEventListener("click", event => { const button = event.target.closest("button"); if (button && !dropped) touch(Number(button.dataset.square)); dropped = false; });
// The Tab key comes back to the square where the keyboard was.
$("squares").addEventListener("focusin", event => { for (const button of $("squares").children) button.tabIndex = button === event.target ? 0 : -1; });
$("squares").addEventListener("keydown", event => {
  const svg = $("picture").querySelector("svg"), columns = Number(svg.dataset.columns), at = Number(event.target.dataset.square);
  const [left, right] = [at % columns ? at - 1 : at, (at + 1) % columns ? at + 1 : at], isTurned = $("board").classList.contains("turned");
  const steps = [left, right, at - columns, at + columns], keys = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];
  const to = steps[isTurned ? [1, 0, 3, 2][keys.indexOf(event.key)] : keys.indexOf(event.key)];
  const button = to === undefined ? null : $("squares").children[to];
  if (to === undefined) return;
  event.preventDefault(); event.stopPropagation();
  if (button) button.focus();
});

$("place").addEventListener("click", () => {
  if (edits) { show(false); return; }
  if (!arrived()) return;
  stop();
  [edits, base, held] = [[], null, []];
  arrows([]);
  clock.turn(null);
  for (const id of ["begin", "back", "forward", "end", "undo", "hint", "resign", "review", "move", "analyze", "new"]) $(id).disabled = true;
  $("placing").hidden = false;
  $("place").setAttribute("aria-pressed", "true");
  $("mover").value = shown.movers.at(-1);
  edited();
});
$("pieces").addEventListener("click", event => { if (event.target.dataset.piece) choose(event.target); });
$("pieces").addEventListener("keydown", event => {
  const all = [...event.currentTarget.children], step = {ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1}[event.key];
  if (!step) return;
  event.preventDefault(); event.stopPropagation();
  const next = all[(all.indexOf(event.target) + step + all.length) % all.length];
  choose(next); next.focus();
});
$("everywhere").addEventListener("click", () => place([...$("squares").children].map(button => Number(button.dataset.square))));
$("mover").addEventListener("change", edited);
$("placed").addEventListener("click", () => begin($("text").textContent));
$("unplaced").addEventListener("click", () => show(false));
