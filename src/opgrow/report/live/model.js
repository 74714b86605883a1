// The model of this page: from the values of a row to a prediction, and how well that does on the rows that are here.

function modelOf(data) {
  const network = networkOf(data.network), encode = encoderOf(data.columns);
  const classes = data.classes, logits = data.loss !== "mse";

  // The prediction of a row of values; with `muted` blocks left out.
  function predict(values, muted = null) {
    const { outputs, seen } = network.run(encode(values), muted);
    if (!classes) return { outputs, seen, shares: outputs, label: null };
    const shares = probabilitiesOf(outputs, logits);
    return { outputs, seen, shares, label: best(shares) };
  }

  // Accuracy or R2 on rows with true values; null if there are none.
  function score(muted = null) {
    const { values, truth } = data.rows;
    if (!truth || !values.length) return null;
    const predicted = values.map((row) => predict(row, muted));
    if (classes) return predicted.filter((one, i) => one.label === truth[i]).length / values.length;
    const r2 = truth[0].map((_, c) => {
      const mean = truth.reduce((sum, row) => sum + row[c], 0) / truth.length;
      const left = predicted.reduce((sum, one, i) => sum + (truth[i][c] - one.outputs[c]) ** 2, 0);
      return 1 - left / truth.reduce((sum, row) => sum + (row[c] - mean) ** 2, 0);
    });
    return r2.reduce((sum, value) => sum + value, 0) / r2.length;
  }

  return { network, encode, predict, score, classes };
}
