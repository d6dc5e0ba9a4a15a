// The page without a server: a worker answers.
const listeners = new Map(), needsServer = "this page needs a web server, for example: python -m http.server";
let engine = null, lastQuestion = 0;
try { engine = new Worker("engine.js"); } catch { /* The page was opened from the disk. */ }
engine?.addEventListener("message", ({data}) => listeners.get(data.id)?.(data));
engine?.addEventListener("error", () => complain(new Error(needsServer)));

// As `fetch`: the answers are lines of JSON.
function serve(path, body, signal) {
  const id = lastQuestion += 1, encoder = new TextEncoder();
  return new Promise((resolve, reject) => {
    if (!engine) { reject(new Error(needsServer)); return; }
    let lines = null, answered = false;
    const stream = new ReadableStream({start(controller) { lines = controller; }, cancel: end});
    function end() { listeners.delete(id); engine.postMessage({id, drop: true}); }
    signal?.addEventListener("abort", () => { end(); const error = new DOMException("no longer wanted", "AbortError"); reject(error); try { lines.error(error); } catch { /* it has ended */ } });
    listeners.set(id, ({answer, done, error}) => {
      if (answer || error) lines.enqueue(encoder.encode(`${JSON.stringify(answer || {error})}\n`));
      if (!answered) { answered = true; resolve(new Response(stream, {status: error ? 400 : 200})); }
      if (done || error) { listeners.delete(id); lines.close(); }
    });
    engine.postMessage({id, path, body});
  });
}
