// Programs of JAX in the browser: an interpreter of the StableHLO that `azjax.export.program.to_program` writes.
// An array is a typed array of its elements, row by row. Operations are prepared once for their shapes: what they read where
// is a list of indices, and `run` reads and writes the arrays of `values` by number.

const KINDS = {f32: Float32Array, i32: Int32Array, ui32: Uint32Array, i16: Int16Array, ui16: Uint16Array, i8: Int8Array, ui8: Uint8Array, i1: Uint8Array};
const sizeOf = shape => shape.reduce((size, length) => size * length, 1);
const stridesOf = shape => { const strides = []; let step = 1; for (let axis = shape.length - 1; axis >= 0; axis -= 1) { strides[axis] = step; step *= shape[axis]; } return strides; };
const range = count => Array.from({length: count}, (_, place) => place);

// The places in an array whose axis k advances by steps[k], for all indices of a shape, row by row.
function placesOf(shape, steps, first = 0) {
  const places = new Int32Array(sizeOf(shape)), index = shape.map(() => 0);
  let place = first;
  for (let at = 0; at < places.length; at += 1) {
    places[at] = place;
    for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
      index[axis] += 1; place += steps[axis];
      if (index[axis] < shape[axis]) break;
      place -= steps[axis] * shape[axis]; index[axis] = 0;
    }
  }
  return places;
}
const inOrder = (places, size) => places.length === size && places.every((place, at) => place === at);

const bits = new DataView(new ArrayBuffer(4));
const asBits = number => { bits.setFloat32(0, number); return bits.getUint32(0); };
const ofBits = whole => { bits.setUint32(0, whole); return bits.getFloat32(0); };
function nextAfter(from, to) {
  if (Number.isNaN(from) || Number.isNaN(to)) return NaN;
  if (from === to) return to;
  if (from === 0) return to > 0 ? ofBits(1) : ofBits(0x80000001);
  return ofBits(asBits(from) + ((from < to) === (from > 0) ? 1 : -1));
}
function ones(word) { let count = 0; for (let rest = word >>> 0; rest; rest &= rest - 1) count += 1; return count; }
// A shift by the width or more leaves nothing.
const shifted = (by, result) => (by >>> 0) < 32 ? result : 0;

const isFloat = type => type === "f32";
const ONE = {
  abs: () => Math.abs, exponential: () => Math.exp, floor: () => Math.floor, log: () => Math.log, log_plus_one: () => Math.log1p, negate: () => x => -x, popcnt: () => ones,
  not: type => type === "i1" ? x => 1 - x : x => ~x, rsqrt: () => x => 1 / Math.sqrt(x), sign: () => Math.sign, sqrt: () => Math.sqrt, square: () => x => x * x, logistic: () => x => 1 / (1 + Math.exp(-x)), tanh: () => Math.tanh,
};
const TWO = {
  add: type => type === "i1" ? (x, y) => x | y : (x, y) => x + y, subtract: () => (x, y) => x - y,
  multiply: type => isFloat(type) || type === "i1" ? (x, y) => x * y : Math.imul,
  divide: type => isFloat(type) ? (x, y) => x / y : (x, y) => y ? Math.trunc(x / y) : -1,
  remainder: type => isFloat(type) ? (x, y) => x % y : (x, y) => y ? x % y : x,
  maximum: () => Math.max, minimum: () => Math.min, power: () => Math.pow, next_after: () => nextAfter,
  and: () => (x, y) => x & y, or: () => (x, y) => x | y, xor: () => (x, y) => x ^ y, second: () => (x, y) => y,
  shift_left: () => (x, y) => shifted(y, x << y), shift_right_logical: () => (x, y) => shifted(y, x >>> y),
  shift_right_arithmetic: () => (x, y) => x >> Math.min(y >>> 0, 31),
};
// The same in loops of their own, which browsers compile to far fewer instructions.
const FAST = {
  add(x, y, made) { for (let at = 0; at < made.length; at += 1) made[at] = x[at] + y[at]; },
  multiply(x, y, made) { for (let at = 0; at < made.length; at += 1) made[at] = x[at] * y[at]; },
};
// Adds rows of an array, each times a factor, four in one pass.
function addRows(sums, factors, firsts, count, rows) {
  let at = 0;
  for (; at + 3 < count; at += 4) {
    const [a, b, c, d] = [firsts[at], firsts[at + 1], firsts[at + 2], firsts[at + 3]], [e, f, g, h] = [factors[at], factors[at + 1], factors[at + 2], factors[at + 3]];
    for (let place = 0; place < sums.length; place += 1) sums[place] += e * rows[a + place] + f * rows[b + place] + g * rows[c + place] + h * rows[d + place];
  }
  for (; at < count; at += 1) { const first = firsts[at], factor = factors[at]; for (let place = 0; place < sums.length; place += 1) sums[place] += factor * rows[first + place]; }
}
const addUp = (read, into, made) => { for (let at = 0; at < read.length; at += 1) made[into[at]] += read[at]; };
const COMPARE = {EQ: (x, y) => x === y, NE: (x, y) => x !== y, LT: (x, y) => x < y, LE: (x, y) => x <= y, GT: (x, y) => x > y, GE: (x, y) => x >= y};

// program: what `to_program` returns. fixed: how many of its inputs are the same arrays in every call, the first ones.
// Returns a function from the arrays of the inputs to those of the outputs.
function prepare(program, fixed) {
  const {types} = program, values = new Array(types.length), isFixed = new Array(types.length).fill(false);
  const typeOf = value => types[value][0], shapeOf = value => types[value][1], size = value => sizeOf(shapeOf(value));
  const fresh = value => new KINDS[typeOf(value)](size(value));
  for (const [value, elements] of program.constants) {
    const array = fresh(value), written = isFloat(typeOf(value)) ? new Uint32Array(array.buffer) : array;
    if (elements.length === 1) written.fill(elements[0]); else written.set(elements);
    values[value] = array;
    isFixed[value] = true;
  }
  program.inputs.slice(0, fixed).forEach(value => { isFixed[value] = true; });

  // Elements of one array, by a list of places in it; the array itself if it has them in this order.
  function take(from, to, places) {
    if (inOrder(places, size(from))) return () => { values[to] = values[from]; };
    if (places.every(place => place === places[0])) { const place = places[0]; return () => { values[to] = fresh(to).fill(values[from][place]); }; }
    return () => { const read = values[from], made = fresh(to); for (let at = 0; at < places.length; at += 1) made[at] = read[places[at]]; values[to] = made; };
  }
  const one = (from, to, change) => () => { const read = values[from], made = fresh(to); for (let at = 0; at < made.length; at += 1) made[at] = change(read[at]); values[to] = made; };
  const two = (left, right, to, combine) => () => { const x = values[left], y = values[right], made = fresh(to); for (let at = 0; at < made.length; at += 1) made[at] = combine(x[at], y[at]); values[to] = made; };

  const PREPARE = {
    reshape: ({in: [from], out: [to]}) => () => { values[to] = values[from]; },
    broadcast_in_dim({in: [from], out: [to], broadcast_dimensions: axes}) {
      const steps = shapeOf(to).map(() => 0), strides = stridesOf(shapeOf(from));
      axes.forEach((axis, of) => { if (shapeOf(from)[of] > 1) steps[axis] = strides[of]; });
      return take(from, to, placesOf(shapeOf(to), steps));
    },
    transpose: ({in: [from], out: [to], permutation}) => take(from, to, placesOf(shapeOf(to), permutation.map(axis => stridesOf(shapeOf(from))[axis]))),
    reverse({in: [from], out: [to], dimensions}) {
      const strides = stridesOf(shapeOf(from)), last = dimensions.reduce((sum, axis) => sum + strides[axis] * (shapeOf(from)[axis] - 1), 0);
      return take(from, to, placesOf(shapeOf(to), strides.map((stride, axis) => dimensions.includes(axis) ? -stride : stride), last));
    },
    slice({in: [from], out: [to], start_indices: starts, strides: each}) {
      const strides = stridesOf(shapeOf(from)), first = starts.reduce((sum, start, axis) => sum + start * strides[axis], 0);
      return take(from, to, placesOf(shapeOf(to), strides.map((stride, axis) => stride * each[axis]), first));
    },
    iota({out: [to], dimension}) {
      const places = placesOf(shapeOf(to), shapeOf(to).map((_, axis) => axis === dimension ? 1 : 0)), made = fresh(to);
      made.set(places);
      return () => { values[to] = made; };
    },
    concatenate({in: parts, out: [to], dimension}) {
      const strides = stridesOf(shapeOf(to));
      let offset = 0;
      const all = parts.map(part => { const places = placesOf(shapeOf(part), strides, offset * strides[dimension]); offset += shapeOf(part)[dimension]; return [part, places]; });
      return () => { const made = fresh(to); for (const [part, places] of all) { const read = values[part]; for (let at = 0; at < places.length; at += 1) made[places[at]] = read[at]; } values[to] = made; };
    },
    pad({in: [from, filling], out: [to], edge_padding_low: low, interior_padding: inner}) {
      const strides = stridesOf(shapeOf(to)), inside = [];
      range(size(from)).forEach(at => {
        const index = indexOf(shapeOf(from), at).map((place, axis) => low[axis] + place * (inner[axis] + 1));
        if (index.every((place, axis) => place >= 0 && place < shapeOf(to)[axis])) inside.push([at, index.reduce((sum, place, axis) => sum + place * strides[axis], 0)]);
      });
      return () => { const made = fresh(to).fill(values[filling][0]), read = values[from]; for (const [at, place] of inside) made[place] = read[at]; values[to] = made; };
    },
    convert({in: [from], out: [to]}) {
      if (KINDS[typeOf(from)] === KINDS[typeOf(to)] && typeOf(to) !== "i1") return () => { values[to] = values[from]; };
      if (typeOf(to) === "i1") return one(from, to, x => x !== 0);
      return one(from, to, isFloat(typeOf(from)) ? Math.trunc : x => x);
    },
    bitcast_convert: ({in: [from], out: [to]}) => () => { const read = values[from]; values[to] = new KINDS[typeOf(to)](read.slice().buffer); },
    select({in: [which, yes, no], out: [to]}) {
      if (size(which) === 1) return () => { values[to] = values[which][0] ? values[yes] : values[no]; };
      return () => { const chosen = values[which], x = values[yes], y = values[no], made = fresh(to); for (let at = 0; at < made.length; at += 1) made[at] = chosen[at] ? x[at] : y[at]; values[to] = made; };
    },
    clamp({in: [low, from, high], out: [to]}) {
      const least = size(low) === 1 ? 0 : 1, most = size(high) === 1 ? 0 : 1;
      return () => { const x = values[low], read = values[from], y = values[high], made = fresh(to); for (let at = 0; at < made.length; at += 1) made[at] = Math.min(Math.max(read[at], x[at * least]), y[at * most]); values[to] = made; };
    },
    compare({in: [left, right], out: [to], direction}) { return two(left, right, to, COMPARE[direction]); },
    dynamic_slice({in: [from, ...starts], out: [to], slice_sizes: sizes}) {
      const strides = stridesOf(shapeOf(from)), most = sizes.map((length, axis) => shapeOf(from)[axis] - length), window = placesOf(sizes, strides);
      return () => {
        let first = 0;
        for (let axis = 0; axis < starts.length; axis += 1) first += strides[axis] * Math.min(Math.max(values[starts[axis]][0], 0), most[axis]);
        const read = values[from], made = fresh(to);
        for (let at = 0; at < made.length; at += 1) made[at] = read[first + window[at]];
        values[to] = made;
      };
    },
    dynamic_update_slice({in: [from, update, ...starts], out: [to]}) {
      const strides = stridesOf(shapeOf(from)), most = shapeOf(update).map((length, axis) => shapeOf(from)[axis] - length), window = placesOf(shapeOf(update), strides);
      return () => {
        let first = 0;
        for (let axis = 0; axis < starts.length; axis += 1) first += strides[axis] * Math.min(Math.max(values[starts[axis]][0], 0), most[axis]);
        const made = values[from].slice(), written = values[update];
        for (let at = 0; at < written.length; at += 1) made[first + window[at]] = written[at];
        values[to] = made;
      };
    },
    gather(operation) {
      const {in: [from, starts], out: [to], slice_sizes: sizes, offset_dims: offsets, collapsed_slice_dims: collapsed, operand_batching_dims: batching} = operation;
      const {firstOf, most, batches} = windows(operation, from, starts, operation.start_indices_batching_dims, batching, operation.start_index_map, sizes);
      const strides = stridesOf(shapeOf(from)), kept = range(sizes.length).filter(axis => !collapsed.includes(axis) && !batching.includes(axis));
      const outer = range(shapeOf(to).length).filter(axis => !offsets.includes(axis));
      const inWindow = placesOf(shapeOf(to), shapeOf(to).map((_, axis) => offsets.includes(axis) ? strides[kept[offsets.indexOf(axis)]] : 0));
      const batchStrides = stridesOf(outer.map(axis => shapeOf(to)[axis]));
      const ofBatch = placesOf(shapeOf(to), shapeOf(to).map((_, axis) => outer.includes(axis) ? batchStrides[outer.indexOf(axis)] : 0));
      const firsts = new Int32Array(batches);
      return () => {
        const index = values[starts], read = values[from], made = fresh(to);
        for (let batch = 0; batch < batches; batch += 1) firsts[batch] = firstOf(index, batch, most, true);
        for (let at = 0; at < made.length; at += 1) made[at] = read[firsts[ofBatch[at]] + inWindow[at]];
        values[to] = made;
      };
    },
    scatter(operation) {
      const {in: [from, indices, updates], out: [to], update_window_dims: window, inserted_window_dims: inserted, input_batching_dims: batching, combine} = operation;
      const kept = range(shapeOf(from).length).filter(axis => !inserted.includes(axis) && !batching.includes(axis)), shape = shapeOf(updates);
      const sizes = shapeOf(from).map((_, axis) => kept.includes(axis) ? shape[window[kept.indexOf(axis)]] : 1);
      const {firstOf, most, batches} = windows(operation, from, indices, operation.scatter_indices_batching_dims, batching, operation.scattered_dims_to_operand_dims, sizes);
      const strides = stridesOf(shapeOf(from)), outer = range(shape.length).filter(axis => !window.includes(axis)), batchStrides = stridesOf(outer.map(axis => shape[axis]));
      const inWindow = placesOf(shape, shape.map((_, axis) => window.includes(axis) ? strides[kept[window.indexOf(axis)]] : 0));
      const ofBatch = placesOf(shape, shape.map((_, axis) => outer.includes(axis) ? batchStrides[outer.indexOf(axis)] : 0));
      const firsts = new Int32Array(batches), change = TWO[combine](typeOf(from));
      return () => {
        const index = values[indices], made = values[from].slice(), written = values[updates];
        for (let batch = 0; batch < batches; batch += 1) firsts[batch] = firstOf(index, batch, most, false);
        for (let at = 0; at < written.length; at += 1) { const first = firsts[ofBatch[at]], place = first + inWindow[at]; if (first >= 0) made[place] = change(made[place], written[at]); }
        values[to] = made;
      };
    },
    dot_general({in: [left, right], out: [to], lhs_batching_dimensions: leftBatch, rhs_batching_dimensions: rightBatch, lhs_contracting_dimensions: leftSum, rhs_contracting_dimensions: rightSum}) {
      const rest = (value, ...used) => range(shapeOf(value).length).filter(axis => !used.flat().includes(axis));
      const [leftRest, rightRest] = [rest(left, leftBatch, leftSum), rest(right, rightBatch, rightSum)];
      const lengths = (value, axes) => sizeOf(axes.map(axis => shapeOf(value)[axis]));
      const [batches, rows, inner, columns] = [lengths(left, leftBatch), lengths(left, leftRest), lengths(left, leftSum), lengths(right, rightRest)];
      const lefts = arranged(left, [...leftBatch, ...leftRest, ...leftSum]), rights = arranged(right, [...rightBatch, ...rightSum, ...rightRest]);
      const sums = new Float64Array(columns), factors = new Float64Array(inner), firsts = new Int32Array(inner);
      return () => {
        const x = lefts(), y = rights(), made = fresh(to);
        for (let batch = 0; batch < batches; batch += 1) for (let row = 0; row < rows; row += 1) {
          const at = (batch * rows + row) * inner;
          let count = 0;
          for (let place = 0; place < inner; place += 1) if (x[at + place] !== 0) { factors[count] = x[at + place]; firsts[count] = (batch * inner + place) * columns; count += 1; }
          addRows(sums.fill(0), factors, firsts, count, y);
          made.set(sums, (batch * rows + row) * columns);
        }
        values[to] = made;
      };
    },
    convolution(operation) {
      const {in: [from, kernel], out: [to], window_strides: each, padding, groups} = operation;
      const {input_spatial_dimensions: inside, kernel_spatial_dimensions: windowAxes, output_spatial_dimensions: outside} = operation;
      const {kernel_input_feature_dimension: ofInputs, kernel_output_feature_dimension: ofOutputs} = operation;
      const images = arranged(from, [operation.input_batch_dimension, ...inside, operation.input_feature_dimension]), kernels = arranged(kernel, [...windowAxes, ofInputs, ofOutputs]);
      const lengths = (value, axes) => axes.map(axis => shapeOf(value)[axis]), [image, window, result] = [lengths(from, inside), lengths(kernel, windowAxes), lengths(to, outside)];
      const [inputs, outputs] = [shapeOf(kernel)[ofInputs], shapeOf(kernel)[ofOutputs]], share = outputs / groups, batches = shapeOf(from)[operation.input_batch_dimension];
      const steps = stridesOf(image), order = [operation.output_batch_dimension, ...outside, operation.output_feature_dimension], toStrides = stridesOf(shapeOf(to));
      const written = placesOf(lengths(to, order), order.map(axis => toStrides[axis])), area = sizeOf(image);
      // For each place of the result: the places of the image that it reads, each with the part of the kernel.
      const reads = range(sizeOf(result)).map(at => range(sizeOf(window)).map(part => {
        const index = indexOf(window, part).map((place, axis) => indexOf(result, at)[axis] * each[axis] - padding[axis][0] + place);
        return index.every((place, axis) => place >= 0 && place < image[axis]) ? [index.reduce((sum, place, axis) => sum + place * steps[axis], 0), part] : null;
      }).filter(Boolean));
      const sums = new Float64Array(outputs);
      return () => {
        const x = images(), y = kernels(), made = fresh(to);
        for (let batch = 0; batch < batches; batch += 1) reads.forEach((pairs, at) => {
          sums.fill(0);
          for (const [place, part] of pairs) for (let input = 0; input < inputs * groups; input += 1) {
            const factor = x[(batch * area + place) * inputs * groups + input];
            if (factor === 0) continue;
            const first = (part * inputs + input % inputs) * outputs, begin = Math.floor(input / inputs) * share;
            for (let output = begin; output < begin + share; output += 1) sums[output] += factor * y[first + output];
          }
          for (let output = 0; output < outputs; output += 1) made[written[(batch * reads.length + at) * outputs + output]] = sums[output];
        });
        values[to] = made;
      };
    },
    reduce({in: operands, out: results, dimensions, combine, regions}) {
      const count = results.length, shape = shapeOf(operands[0]), kept = range(shape.length).filter(axis => !dimensions.includes(axis)), strides = stridesOf(kept.map(axis => shape[axis]));
      const into = placesOf(shape, shape.map((_, axis) => kept.includes(axis) ? strides[kept.indexOf(axis)] : 0));
      if (combine) {
        const [from, initial] = operands, [to] = results, change = TWO[combine](typeOf(from));
        if (combine === "add" && isFloat(typeOf(from))) return () => { const made = fresh(to).fill(values[initial][0]); addUp(values[from], into, made); values[to] = made; };
        return () => { const read = values[from], made = fresh(to).fill(values[initial][0]); for (let at = 0; at < read.length; at += 1) made[into[at]] = change(made[into[at]], read[at]); values[to] = made; };
      }
      const {inputs, outputs} = regions[0], run = sequence(regions[0].operations);
      return () => {
        const made = results.map((to, place) => fresh(to).fill(values[operands[count + place]][0]));
        for (let at = 0; at < into.length; at += 1) {
          made.forEach((array, place) => { values[inputs[place]] = array.slice(into[at], into[at] + 1); values[inputs[count + place]] = values[operands[place]].slice(at, at + 1); });
          run();
          made.forEach((array, place) => { array[into[at]] = values[outputs[place]][0]; });
        }
        results.forEach((to, place) => { values[to] = made[place]; });
      };
    },
    reduce_window({in: [from, initial], out: [to], window_dimensions: window, window_strides: each, padding, combine}) {
      const shape = shapeOf(from), strides = stridesOf(shape), change = TWO[combine](typeOf(from));
      const reads = range(size(to)).map(at => range(sizeOf(window)).map(place => indexOf(window, place).map((inside, axis) => indexOf(shapeOf(to), at)[axis] * each[axis] - padding[axis][0] + inside))
        .filter(index => index.every((place, axis) => place >= 0 && place < shape[axis])).map(index => index.reduce((sum, place, axis) => sum + place * strides[axis], 0)));
      return () => { const read = values[from], made = fresh(to); reads.forEach((places, at) => { made[at] = places.reduce((sum, place) => Math.fround(change(sum, read[place])), values[initial][0]); }); values[to] = made; };
    },
    while({in: operands, out: results, regions: [condition, body]}) {
      const goesOn = sequence(condition.operations), step = sequence(body.operations), [holds] = condition.outputs;
      return () => {
        let carried = operands.map(value => values[value]);
        for (;;) {
          condition.inputs.forEach((value, place) => { values[value] = carried[place]; });
          goesOn();
          if (!values[holds][0]) break;
          body.inputs.forEach((value, place) => { values[value] = carried[place]; });
          step();
          carried = body.outputs.map(value => values[value]);
        }
        results.forEach((value, place) => { values[value] = carried[place]; });
      };
    },
    case({in: [which], out: results, regions}) {
      const branches = regions.map(region => sequence(region.operations)), last = regions.length - 1;
      return () => {
        const index = values[which][0], chosen = index >= 0 && index <= last ? index : last;
        branches[chosen]();
        results.forEach((value, place) => { values[value] = values[regions[chosen].outputs[place]]; });
      };
    },
  };
  // The window of each batch of a gather or a scatter: where it begins in the operand.
  function windows(operation, from, starts, startBatching, batching, map, sizes) {
    const shape = shapeOf(starts), vector = operation.index_vector_dim, strides = stridesOf(shape), operand = stridesOf(shapeOf(from));
    const outer = range(shape.length).filter(axis => axis !== vector), outerShape = outer.map(axis => shape[axis]), batches = sizeOf(outerShape);
    const at = placesOf(outerShape, outer.map(axis => strides[axis])), apart = vector < shape.length ? strides[vector] : 0;
    const batchSteps = outer.map(axis => startBatching.includes(axis) ? operand[batching[startBatching.indexOf(axis)]] : 0), ofBatching = placesOf(outerShape, batchSteps);
    const most = map.map(axis => shapeOf(from)[axis] - sizes[axis]), steps = map.map(axis => operand[axis]);
    // Outside of the operand it moves inside if it `clamps`, and counts as -1 otherwise.
    const firstOf = (index, batch, limits, clamps) => {
      let first = ofBatching[batch];
      for (let place = 0; place < steps.length; place += 1) {
        const start = index[at[batch] + place * apart], limit = limits[place];
        if (!clamps && (start < 0 || start > limit)) return -1;
        first += steps[place] * Math.min(Math.max(start, 0), limit);
      }
      return first;
    };
    return {firstOf, most, batches};
  }
  // A function that gives an array with its axes in another order; of a fixed one, always the same array.
  function arranged(value, axes) {
    const strides = stridesOf(shapeOf(value)), places = placesOf(axes.map(axis => shapeOf(value)[axis]), axes.map(axis => strides[axis]));
    if (inOrder(places, size(value))) return () => values[value];
    let known = null;
    return () => {
      if (known && isFixed[value]) return known;
      const read = values[value];
      known = new read.constructor(places.length);
      for (let at = 0; at < places.length; at += 1) known[at] = read[places[at]];
      return known;
    };
  }
  function indexOf(shape, at) { return stridesOf(shape).map((stride, axis) => Math.floor(at / stride) % shape[axis]); }
  // Operations one after another. What depends on fixed values alone is computed once.
  function sequence(operations) {
    const steps = operations.map(operation => {
      const {op, in: [left, right], out: [to]} = operation;
      let run;
      if (FAST[op] && isFloat(typeOf(left))) run = () => { const made = fresh(to); FAST[op](values[left], values[right], made); values[to] = made; };
      else if (ONE[op]) run = one(left, to, ONE[op](typeOf(left)));
      else if (TWO[op]) run = two(left, right, to, TWO[op](typeOf(left)));
      else run = PREPARE[op](operation);
      if (operation.regions || !operation.in.every(value => isFixed[value])) return run;
      operation.out.forEach(value => { isFixed[value] = true; });
      return () => { if (values[to] === undefined) run(); };
    });
    return () => { for (let at = 0; at < steps.length; at += 1) steps[at](); };
  }
  const run = sequence(program.operations);
  return inputs => {
    program.inputs.forEach((value, place) => { values[value] = inputs[place]; });
    run();
    return program.outputs.map(value => values[value]);
  };
}
