$("begin").addEventListener("click", () => jump(0));
$("back").addEventListener("click", () => jump(game.ply - 1));
$("forward").addEventListener("click", () => jump(game.ply + 1));
$("end").addEventListener("click", () => jump(game.actions.length));
$("undo").addEventListener("click", takeBack);
$("new").addEventListener("click", () => begin(null));
$("swap").addEventListener("click", () => {
  const [first, second] = [$("player0"), $("player1")];
  [first.value, second.value] = [second.value, first.value];
  begin(null);
});
// A game is resigned by a second press within three seconds.
$("resign").addEventListener("click", async () => {
  if ($("resign").dataset.sure) { giveUp(shown.movers.at(-1), "resignation"); return; }
  const asked = String(performance.now());
  $("resign").dataset.sure = asked; $("resign").textContent = "Really?";
  await wait(3000);
  if ($("resign").dataset.sure === asked) { delete $("resign").dataset.sure; $("resign").textContent = "Resign"; }
});
$("clock").addEventListener("change", () => {
  if (!game.actions.length) enter(game.start);
  else $("message").textContent = "the clocks change with the next game";
});
$("turn").addEventListener("click", () => $("turn").setAttribute("aria-pressed", $("board").classList.toggle("turned")));
$("sound").addEventListener("click", () => { const on = $("sound").getAttribute("aria-pressed") !== "true"; $("sound").setAttribute("aria-pressed", on); knock(); });
let audio = null;
// A short knock, as of a piece on wood, if sound is on.
function knock() {
  if ($("sound").getAttribute("aria-pressed") !== "true") return;
  audio ??= new AudioContext();
  const now = audio.currentTime, tone = audio.createOscillator(), loudness = audio.createGain();
  tone.frequency.setValueAtTime(320, now);
  tone.frequency.exponentialRampToValueAtTime(90, now + .06);
  loudness.gain.setValueAtTime(.4, now);
  loudness.gain.exponentialRampToValueAtTime(.001, now + .09);
  tone.connect(loudness).connect(audio.destination);
  tone.start(now); tone.stop(now + .1);
}
$("copy").addEventListener("click", async () => {
  if (!navigator.clipboard) { getSelection().selectAllChildren($("text")); $("message").textContent = "the position is selected: press Ctrl-C (browsers let a page copy only over https)"; return; }
  try { await navigator.clipboard.writeText($("text").textContent); $("copy").textContent = "Copied"; await wait(1500); } catch (error) { complain(error); }
  $("copy").textContent = "Copy";
});
// The address holds the game, so that it can be sent or kept; that of a game that has not begun is empty.
let refused = null;  // an address that holds no game of this page: it stays until there is one to write
function address() {
  const {start, actions, result} = game, isFresh = start === null && !actions.length && !result;
  return isFresh ? "" : `#${encodeURIComponent(JSON.stringify({game: about.game, options: about.options, start, actions, ...(result && {result})}))}`;
}
function remember() {
  if (!address() && location.hash === refused) return;
  try { history.replaceState(null, "", address() || location.pathname); } catch { /* Browsers limit how often: the next move brings it up to date. */ }
}
// Before moves are lost: the browser's Back brings this game again.
function keep() {
  if (!address()) return;
  remember();
  try { history.pushState(null, "", address()); } catch { /* as above */ }
}
function remembered() {
  if (!location.hash) return [null, []];
  let kept = null;
  try { kept = JSON.parse(decodeURIComponent(location.hash.slice(1))); } catch { /* refused below */ }
  if (!Array.isArray(kept?.actions)) throw new Error("the address holds no game");
  // Older addresses do not name their game.
  const name = kept.game ?? about.game, options = Object.entries(kept.options ?? {}), {start, actions, result} = kept;
  if (name !== about.game || options.some(([option, value]) => JSON.stringify(value) !== JSON.stringify(about.options[option]))) {
    throw new Error(`the address holds a game of ${name}${options.length ? ` (${options.map(each => each.join("=")).join(", ")})` : ""}`);
  }
  const isResult = result && [0, 1, null].includes(result.winner) && typeof result.end === "string";
  return [start ?? null, actions, actions.length, isResult ? result : null];
}
// Enters the game of the address if the rules allow it; else the game in progress goes on.
async function follow() {
  try {
    const [start, actions, ...rest] = remembered();
    await describe({start, actions}).catch(error => { throw new Error(`the game of the address cannot be shown: ${error.message}`); });
    await enter(start, actions, ...rest);
  } catch (error) {
    refused = location.hash;
    if (!shown) await enter(null);
    complain(error);
  }
}
addEventListener("hashchange", () => { if (location.hash !== address()) follow(); });
$("hint").addEventListener("click", async () => {
  if (!arrived()) return;
  $("analyze").setAttribute("aria-pressed", "false");
  const answer = await think(about.levels.at(-1), true);
  if (answer) $("thought").textContent = `Hint: ${answer.policy[0].move}. ${$("thought").textContent}`;
});
$("analyze").addEventListener("click", () => {
  const on = $("analyze").getAttribute("aria-pressed") !== "true";
  $("analyze").setAttribute("aria-pressed", on);
  if (on) show(false);
  else if (arrived() && !replying()) stop();  // what was found stays
});
$("seconds").addEventListener("change", () => $("seconds").reportValidity());
for (const id of ["player0", "player1"]) $(id).addEventListener("change", () => show(false));
$("typed").addEventListener("submit", event => {
  event.preventDefault();
  const typed = $("move").value.trim().toLowerCase(), found = shown.legal.find(each => each.move.toLowerCase() === typed);
  if (game.ply < game.actions.length) $("message").textContent = "go to the end of the game to move (End)";
  else if (!mine()) $("message").textContent = "it is not your turn";
  else if (found) { $("move").value = ""; play(found.action); }
  else $("message").textContent = `${$("move").value || "nothing"} is not a legal move here`;
});
$("setup").addEventListener("submit", async event => {
  event.preventDefault();
  try { const {start} = await (await ask("setup", {text: $("position").value})).json(); await begin(start); } catch (error) { complain(error); }
});
$("save").addEventListener("click", async () => {
  try {
    const players = [0, 1].map(seat => { const level = $(`player${seat}`); return level.value === "person" ? "person" : `${about.agent}, ${level.selectedOptions[0].textContent}`; });
    const {line} = await (await ask("record", {start: game.start, actions: game.actions, result: game.result, players, ...(loaded?.at === address() && loaded.told)})).json();
    $("line").value = line;
    const link = element("a");
    link.href = URL.createObjectURL(new Blob([line + "\n"], {type: "application/json"}));
    link.download = `${about.game}.jsonl`;
    link.click();
    URL.revokeObjectURL(link.href);
  } catch (error) { complain(error); }
});
let loaded = null;  // what is `told` of the game that was loaded: who played it, and its random opening
async function load(text) {
  const lines = text.split("\n").filter(line => line.trim());
  try {
    const {start, actions, result, ...told} = await (await ask("load", {line: lines[0] ?? ""})).json();
    for (const seat of [0, 1]) $(`player${seat}`).value = "person";
    const isShown = begin(start, actions, actions.length, result);
    loaded = {at: address() || null, told};
    if (lines.length > 1) $("message").textContent = `the first of ${lines.length.toLocaleString("en")} games`;
    await isShown;
  } catch (error) { complain(error); }
}
$("take").addEventListener("click", () => load($("line").value));
$("load").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", async () => { const [file] = $("file").files; if (file) { const text = await file.text(); $("line").value = text.trim().split("\n")[0]; $("file").value = ""; await load(text); } });
addEventListener("keydown", event => {
  if (event.target.closest("input, textarea, select, summary") || event.ctrlKey || event.metaKey || event.altKey) return;
  const press = {ArrowLeft: "back", ArrowRight: "forward", Home: "begin", End: "end", u: "undo", h: "hint", r: "resign", t: "turn", n: "new", a: "analyze"}[event.key];
  if (event.repeat && press === "resign") return;
  if (press && !$(press).disabled) { event.preventDefault(); $(press).click(); }
  if (event.key !== "Escape") return;
  if (edits) $("unplaced").click();
  else if (arrived()) { held = []; mark(); }
});
function darken(dark) {
  document.documentElement.toggleAttribute("data-dark", dark);
  $("dark").setAttribute("aria-pressed", dark);
  recolor();
}
$("dark").addEventListener("click", () => darken($("dark").getAttribute("aria-pressed") !== "true"));

(async () => {
  darken(matchMedia("(prefers-color-scheme: dark)").matches);
  try {
    const title = capital(about.game.replaceAll("_", " "));
    document.title = $("title").textContent = about.agent === about.game ? title : `${title}: ${about.agent}`;
    const levels = {hard: about.agent, search: isTrained ? "full strength" : "search with random rollouts"};
    $("how").textContent = about.rules; $("rules").hidden = !about.rules;
    const [example] = served.position.legal;
    for (const {svg, shows} of about.examples) { const figure = element("figure", undefined, $("examples")); figure.innerHTML = svg; element("figcaption", shows, figure); }
    $("writing").textContent = about.notation && `${about.notation} At the start, for example: ${example.move}`;
    const drawn = isTrained ? "Beginner and easy choose moves at random, weighted by the policy of the network; medium plays the best move of the network; full strength searches." : "";
    $("levels").textContent = [drawn, about.facts.levels].filter(Boolean).join(" ");
    for (const [label, text] of Object.entries(about.facts)) { element("dt", label, $("facts")); element("dd", text, $("facts")); }
    for (const seat of [0, 1]) {
      $(`name${seat}`).replaceChildren(...named(seat));
      const select = $(`player${seat}`);
      for (const level of ["person", ...about.levels]) { const option = element("option", level === "person" ? "person" : levels[level] || level, select); option.value = level; }
      select.value = seat ? about.levels.at(-1) : "person";
    }
    const counts = [...new Set([16, 64, 256, 1024, 4096, about.simulations])].filter(count => count <= about.most).sort((a, b) => a - b);
    for (const count of counts) { const option = element("option", `${count.toLocaleString("en")} simulations`, $("strength")); option.value = count; option.selected = count === about.simulations; }
    $("place").hidden = !about.pieces.length;
    for (const id of ["setting", "notation", "branches"]) $(id).hidden = Boolean(about.static);  // a server answers these
    $("turn").hidden = !about.board;
    about.pieces.forEach((name, number) => { const button = element("button", name, $("pieces")); button.type = "button"; button.className = "b"; button.dataset.piece = number; button.setAttribute("role", "radio"); });
    if (about.pieces.length) choose($("pieces").children[1]);
    about.players.forEach((name, seat) => { element("option", name, $("mover")).value = seat; });
    await follow();
    if (about.static && !engine) complain(new Error(needsServer));
  } catch (error) { complain(error); }
})();
