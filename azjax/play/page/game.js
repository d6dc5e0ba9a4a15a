"use strict";
const $ = id => document.getElementById(id);
const wait = milliseconds => new Promise(done => setTimeout(done, milliseconds));
// The game is its start, its actions, and how many of these are shown. `result` is set where the rules do not end it: the
// winner (null for a draw), and the end as records name it.
const game = { start: null, actions: [], ply: 0, result: null };
const expected = new Map();      // ply -> expected result for the first player, 0..1
let losses = new Map();          // ply -> loss of value by its move
const better = new Map();        // ply -> the best action there, as a review found
const served = JSON.parse($("first").textContent);  // the game and its start, as the server describes them
const about = served.game;
const isTrained = about.levels.includes("beginner");  // a player of another kind has no network
let shown = null;                // the server's description of the position shown, with the question `asked`
let movers = [];                 // the player to move, by ply
let held = [];                   // squares clicked so far
let edits = null;                // pieces placed to set up a position, [square, piece]; null during a game
let base = null;                 // text of the position on which they are placed; null for the game's position
let thinking = null;             // the AbortController of the search in progress
let thoughtAt = -2;              // the ply of the last search
let turn = 0;                    // grows with every change, so that late answers are dropped
let answered = null;             // the last game that the server has answered

async function ask(path, body, signal) {
  const response = about.static ? await serve(path, body, signal) : await fetch(path, {method: "POST", signal, headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)});
  if (!response.ok) throw new Error((await response.json().catch(() => ({}))).error || `the server answers ${response.status}`);
  return response;
}
async function* linesOf(response, onWaiting = () => {}) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", isTold = false;
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const answer = JSON.parse(line);
      if (answer.error) throw new Error(answer.error);
      if (answer.waiting) { $("message").textContent = answer.waiting; isTold = true; onWaiting(); continue; }
      if (isTold) { $("message").textContent = ""; isTold = false; }
      yield answer;
    }
  }
}
const describe = async asked => asked.start === null && !asked.actions.length ? served.position : (await ask("position", asked)).json();
const here = () => ({start: game.start, actions: game.actions.slice(0, game.ply)});
const complain = error => { if (error.name !== "AbortError") $("message").textContent = error.message || String(error); };
const capital = words => words[0].toUpperCase() + words.slice(1);
const dot = seat => { const made = document.createElement("span"); made.className = "dot"; made.dataset.seat = seat; return made; };
const named = seat => [dot(seat), capital(about.players[seat])];
const element = (tag, text, parent) => { const made = document.createElement(tag); if (text !== undefined) made.textContent = text; if (parent) parent.append(made); return made; };

// The keyboard stays at its place when buttons are made anew.
function replace(box, made) {
  const place = [...box.children].findIndex(each => each.contains(document.activeElement));
  box.replaceChildren(...made);
  if (place < 0) return;
  const button = made[Math.min(place, made.length - 1)];
  (button && (button.querySelector("button") || button)).focus({preventScroll: true});
}

const people = seat => $(`player${seat}`).value === "person";
function stop() {
  turn += 1;
  delete $("resign").dataset.sure;
  $("resign").textContent = "Resign";
  if (thinking) thinking.abort();
  thinking = null;
}

async function show(animate = true) {
  stop();
  const now = turn, stays = arrived(), asked = here();
  if (stays) held = [];  // else its squares stay marked until the answer
  edits = null;
  $("message").textContent = "";
  $("placing").hidden = true;
  $("place").setAttribute("aria-pressed", "false");
  try {
    const answer = await describe(asked);
    if (now !== turn) return;
    shown = {...answer, asked};
    movers = [...answer.movers, ...movers.slice(answer.movers.length, game.actions.length + 1)];
    if (!stays) held = [];
    answered = {start: game.start, actions: [...game.actions], ply: game.ply, result: game.result};
    draw(answer.svg, animate);
    squares();
    list();
    graph();
    verdict();
    book();
    $("text").textContent = answer.text;
    if (game.ply !== thoughtAt + 1) { thoughtAt = -2; $("policy").replaceChildren(); $("variation").textContent = ""; $("tree").replaceChildren(); $("thought").textContent = "nothing yet"; }
    $("legal").replaceChildren(...answer.legal.map(each => { const option = document.createElement("option"); option.value = each.move; return option; }));
    const [first] = answer.rewards;
    if (answer.over) expected.set(game.ply, (1 + Math.sign(first)) / 2);
    bar(latest());
    const mover = answer.movers.at(-1);
    tell();
    remember();
    const atEnd = game.ply === game.actions.length, isOver = answer.over || game.result;
    // A search in the agent's place would end its own.
    const free = !atEnd || isOver || people(mover);
    const focused = document.activeElement, beside = {begin: "forward", back: "forward", undo: "new", forward: "back", end: "back"}[focused.id];
    for (const [id, can] of [["begin", game.ply], ["back", game.ply], ["undo", game.ply || game.result], ["forward", !atEnd], ["end", !atEnd],
      ["hint", free && !answer.over], ["resign", mine()], ["review", free && game.actions.length], ["move", !answer.over], ["analyze", true], ["new", true]]) $(id).disabled = !can;
    if (beside && focused.disabled) $(beside).focus({preventScroll: true});  // else the keyboard would lose its place
    // While one looks back, an agent does not think, and its clock stands.
    const runs = atEnd ? mover : clock.side;
    clock.turn(runs === null || !people(runs) || (atEnd && isOver) ? null : runs);
    if (isOver || !atEnd) { if ($("analyze").getAttribute("aria-pressed") === "true" && !answer.over) await think("search", false); return; }
    if (!people(mover)) await reply($(`player${mover}`).value);
    else if ($("analyze").getAttribute("aria-pressed") === "true") await think("search", false);
  } catch (error) {
    complain(error);
    // What was refused is taken back.
    if (now !== turn || error.name === "AbortError") return;
    held = [];
    if (answered) { Object.assign(game, answered, {actions: [...answered.actions]}); mark(); list(); }
  }
}
// Whether the agent chooses its move.
const replying = () => game.ply === game.actions.length && !shown.over && !game.result && !people(shown.movers.at(-1));
function tell() {
  const mover = shown.movers.at(-1), [first, second] = shown.rewards;
  const chosen = held.map(square => $("squares").children[square].getAttribute("aria-label")).join(" ");
  $("squares").classList.toggle("sent", !arrived());
  if (!arrived()) return;
  const given = game.result && game.ply === game.actions.length ? game.result : null;
  // Who sees the board needs no words for the last move.
  const last = element("span", shown.moves.length && !chosen && !given ? `${shown.moves.at(-1)}. ` : "");
  last.className = "hidden";
  $("status").replaceChildren(last, ...(shown.over ? (first === second ? ["A draw"] : [...named(first > second ? 0 : 1), " won"])
    : given ? (given.winner === null ? [`A draw (${given.end})`] : [...named(given.winner), ` won: ${about.players[1 - given.winner]} ${ENDS[given.end] || `(${given.end})`}`])
    : [...named(mover), chosen ? ` to move: ${chosen}, then ...` : " to move"]));
}
function jump(ply) { game.ply = Math.min(game.actions.length, Math.max(0, ply)); show(); }
function takeBack() {
  if (!arrived()) return;
  stop();
  if (game.result) {
    // Only this is taken back. Who ran out of time plays on without a clock.
    game.result = null;
    if (Math.min(...clock.left) <= 0) clock.limit = 0;
    clock.tell();
    expected.delete(game.actions.length);
    jump(game.actions.length);
    return;
  }
  if (game.ply < game.actions.length) keep();
  let ply = game.ply - 1;
  while (ply > 0 && (people(0) || people(1)) && !people(movers[ply])) ply -= 1;
  game.ply = Math.max(0, ply);
  game.actions.length = game.ply;
  forget(game.ply + 1);
  show();
}
function begin(...another) { keep(); return enter(...another); }
function enter(start, actions = [], ply = actions.length, result = null) {
  Object.assign(game, {start, actions, ply, result});
  expected.clear(); losses = new Map(); better.clear(); names = []; movers = [];
  $("reviewed").textContent = "";
  thoughtAt = -2;
  clock.begin();
  return show(false);
}
const ENDS = {resignation: "resigned", time: "ran out of time"};
// A side loses: it resigned, or its time ran out.
function giveUp(loser, end) {
  if (game.result || (shown.over && arrived() && game.ply === game.actions.length)) return;
  stop();
  game.result = {winner: 1 - loser, end};
  expected.set(game.actions.length, loser);
  jump(game.actions.length);
}

// The clocks of both sides, in seconds. That of a person runs while it is to move, that of an agent while it searches.
const clock = {
  limit: 0, left: [0, 0], side: null, seen: 0,
  begin() { this.limit = 60 * Number($("clock").value); this.left = [this.limit, this.limit]; this.side = null; this.turn(null); },
  turn(side) { this.tick(); this.side = game.result ? null : side; this.tell(); },
  tick() {
    const now = performance.now(), passed = (now - this.seen) / 1000, side = this.side;
    this.seen = now;
    if (!this.limit || side === null) return;
    this.left[side] = Math.max(0, this.left[side] - passed);
    this.tell();
    if (!this.left[side]) { this.side = null; giveUp(side, "time"); }
  },
  tell() {
    $("clocks").hidden = !this.limit;
    const inMinutes = seconds => `${Math.floor(Math.ceil(seconds) / 60)}:${String(Math.ceil(seconds) % 60).padStart(2, "0")}`;
    $("clocks").replaceChildren(...[0, 1].flatMap(seat => [dot(seat), `${inMinutes(this.left[seat])}  `]));
  },
};
setInterval(() => clock.tick(), 200);
