// Asks the worker of an exhibition the questions of standard input, one after another.
const fs = require("fs"), folder = process.argv[1], said = [];
const read = name => fs.readFileSync(`${folder}/${name}`);
globalThis.fetch = async name => ({ok: true, json: async () => JSON.parse(read(name)), arrayBuffer: async () => new Uint8Array(read(name)).buffer});
globalThis.postMessage = message => said.push(message);
new Function(`${read("engine.js")}; globalThis.ask = onmessage;`)();
(async () => {
  const answers = [];
  for (const [id, [path, body]] of JSON.parse(fs.readFileSync(0)).entries()) {
    said.length = 0;
    await ask({data: {id, path, body}});
    answers.push(said.filter(({done, answer}) => !done && !answer?.waiting).map(({error, answer}) => error ? {error} : answer));
  }
  process.stdout.write(JSON.stringify(answers));
})();
