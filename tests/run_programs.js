// Runs programs from standard input; after page/stablehlo.js.
const given = JSON.parse(require("fs").readFileSync(0));
const answers = given.map(({program, fixed, inputs}) => {
  const run = prepare(program, fixed), kind = value => program.types[value][0];
  const ofBits = (value, bits) => isFloat(kind(value)) ? new Float32Array(Uint32Array.from(bits).buffer) : KINDS[kind(value)].from(bits);
  const bitsOf = array => [...(array instanceof Float32Array ? new Uint32Array(array.buffer, array.byteOffset, array.length) : array)];
  return inputs.map(arrays => run(arrays.map((bits, place) => ofBits(program.inputs[place], bits))).map(bitsOf));
});
process.stdout.write(JSON.stringify(answers));
