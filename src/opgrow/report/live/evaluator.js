// A network, computed in a page as Python's engine computes it: sums and features are rounded to single precision,
// outputs of a linear head are added up in double precision. OPERATORS has the operators of this network.

// The arrays of a description: numbers in base64, one text for single and one for double precision.
function unpacked(description) {
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
  const singles = new Float32Array(bytes(description.singles));
  const doubles = new Float64Array(bytes(description.doubles));
  return {
    single: (place) => (place ? singles.subarray(place[0], place[0] + place[1]) : null),
    double: (place) => (place ? doubles.subarray(place[0], place[0] + place[1]) : null),
  };
}

function networkOf(description) {
  const arrays = unpacked(description);
  const { inputs, outputs, bound, spans } = description;
  const [mean, scale] = [arrays.double(description.mean), arrays.double(description.scale)];
  const [factor, shift] = [arrays.double(description.output_scale), arrays.double(description.output_mean)];
  const [low, high] = [arrays.double(description.output_low), arrays.double(description.output_high)];
  const [least, most] = [arrays.single(description.head_low), arrays.single(description.head_high)];
  const opened = (block) => ({
    ...block,
    pooled: OPERATORS.pooled[block.operators[0] + "/" + block.operators[1]],
    activation: OPERATORS.activation[block.operators[2]],
    weight: arrays.single(block.weight), bias: arrays.single(block.bias), moments: arrays.single(block.moments),
  });
  const layers = description.layers.map((layer) => layer.map(opened));
  const head = description.head.operators ? opened(description.head) : {
    weight: arrays.single(description.head.weight), bias: arrays.single(description.head.bias),
  };
  const linear = !description.head.operators;
  const n_features = linear ? head.weight.length / outputs : head.inputs;

  function standardized(row) {
    const out = new Float32Array(inputs);
    for (let k = 0; k < inputs; k++) {
      let z = (row[k] - mean[k]) / scale[k];
      if (bound !== null) {
        z = Math.min(Math.max(z, -1e4 * bound), 1e4 * bound);
        z /= Math.sqrt(1 + (z / bound) * (z / bound));
      }
      out[k] = z;
    }
    return out;
  }

  // Divide by the Euclidean norm; zeros stay. Dividing by the largest first keeps squares in range.
  function unitNorm(values) {
    let largest = 0, squares = 0;
    for (const value of values) largest = Math.max(largest, Math.abs(value));
    if (!(largest > 0)) return;
    for (let i = 0; i < values.length; i++) {
      values[i] /= largest;
      squares += values[i] * values[i];
    }
    const norm = Math.fround(Math.sqrt(squares));
    for (let i = 0; i < values.length; i++) values[i] /= norm;
  }

  function compute(block, from, out) {
    const { pooled, activation, weight, bias, moments, inputs: n, neurons: d, first } = block;
    for (let j = 0; j < d; j++) out[j] = Math.fround(pooled(from, first, n, weight, j * n)) + (bias ? bias[j] : 0);
    if (block.norm === "unit") unitNorm(out);
    for (let j = 0; j < d; j++) out[j] = activation(out[j]);
    if (!moments) return;
    for (let j = 0; j < d; j++)
      out[j] = Math.fround(out[j] - moments[j]) * moments[d + j] + moments[2 * d + j];
  }

  function finished(c, value, plain) {
    if (factor) value = value * factor[c] + shift[c];
    if (plain) return value;
    if (low) value = Math.min(Math.max(value, low[c]), high[c]);
    return factor ? value : Math.fround(value);
  }

  // Outputs of a row of inputs, and what the head sees of it. Blocks whose numbers are in `muted` say 0.
  function run(row, muted = null) {
    let from = standardized(row), number = 0;
    const features = [];
    for (const layer of layers) {
      const out = new Float32Array(layer.reduce((sum, block) => sum + block.neurons, 0));
      let at = 0;
      for (const block of layer) {
        const part = out.subarray(at, at + block.neurons);
        compute(block, from, part);
        if (muted && muted.has(number)) part.fill(0);
        at += block.neurons;
        number += 1;
      }
      features.push(out);
      from = out;
    }
    let seen = from;
    if (spans.length) {
      seen = new Float32Array(n_features);
      let at = 0;
      for (const [layer, start, stop] of spans) {
        seen.set(features[layer].subarray(start, stop), at);
        at += stop - start;
      }
    }
    if (least) seen = seen.map((value, f) => (muted && muted.has(origins[f]?.block) ? value : Math.min(Math.max(value, least[f]), most[f])));
    return { outputs: headOf(seen), seen };
  }

  // What the head makes of features; `plain` without limits of the outputs, and unrounded.
  function headOf(seen, plain = false) {
    const out = new Array(outputs);
    if (!linear) {
      const values = new Float32Array(outputs);
      compute(head, seen, values);
      for (let c = 0; c < outputs; c++) out[c] = finished(c, values[c], plain);
      return out;
    }
    for (let c = 0; c < outputs; c++) {
      let sum = 0;
      for (let f = 0, at = c * n_features; f < n_features; f++, at++) sum += head.weight[at] * seen[f];
      out[c] = finished(c, sum + head.bias[c], plain);
    }
    return out;
  }

  // Where the features that the head sees come from: [{block, neuron}], blocks numbered through all layers.
  function sources() {
    const places = layers.map(() => []);
    let number = 0;
    layers.forEach((layer, l) => layer.forEach((block) => {
      for (let j = 0; j < block.neurons; j++) places[l].push({ block: number, neuron: j });
      number += 1;
    }));
    return spans.flatMap(([layer, start, stop]) => places[layer].slice(start, stop));
  }

  const origins = sources();

  // What a feature adds to an output of a linear head, for each unit of it.
  const slope = (c, f) => head.weight[c * n_features + f] * (factor ? factor[c] : 1);
  return { inputs, outputs, layers, linear, run, headOf, sources, slope, n_features };
}

// Class probabilities of outputs: a softmax of logits, or outputs of least squares as shares.
function probabilitiesOf(outputs, logits) {
  let largest = outputs[0], total = 0;
  for (const value of outputs) if (value > largest || value !== value) largest = value;
  const soft = logits || largest <= 0;
  const shares = outputs.map((value) => (soft ? Math.exp(value - largest) : value < 0 ? 0 : value / largest));
  for (const share of shares) total += share;
  return shares.map((share) => share / total);
}

// The first of the largest.
function best(values) {
  let place = 0;
  values.forEach((value, i) => { if (value > values[place]) place = i; });
  return place;
}
