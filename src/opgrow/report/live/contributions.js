// What each input contributes to what is predicted of the values that are set: Shapley values, over rows of the page.

const ORDERS = 256, FEWEST = 2, WORK = 3e7, MOST_TRIED = 4096;

// Rows of the page that averages are taken over, from all parts of it, and in how many orders the columns are tried.
function backgroundOf(data, least = FEWEST) {
  const all = data.rows.values, most = WORK / (data.columns.length * Math.max(100, data.parameters));
  const pairs = Math.max(least, Math.floor(Math.min(ORDERS, most) / 2)), n = Math.min(pairs, all.length);
  return { rows: Array.from({ length: n }, (_, k) => all[Math.floor((k * all.length) / n)]), orders: n ? 2 * n * Math.floor(pairs / n) : 0 };
}
const mixed = (mix, outputs) => mix.reduce((sum, weight, k) => sum + weight * outputs[k], 0);

// Orders of the columns, the same every time; each is followed by its reverse, which makes errors smaller.
function ordersOf(columns, n) {
  let seed = 12345;
  const random = () => (seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff) / 2147483648;
  const orders = [];
  while (orders.length < n) {
    const order = [...columns];
    for (let i = order.length - 1; i > 0; i--) {
      const j = Math.floor(random() * (i + 1));
      [order[i], order[j]] = [order[j], order[i]];
    }
    orders.push(order, [...order].reverse());
  }
  return orders;
}

// What each column contributes: what replacing the values of some rows by these changes, averaged over orders.
function contributionsOf(model, data, state, mix) {
  const columns = data.columns.map((_, i) => i).filter((i) => data.columns[i].kind !== "dropped");
  const { rows, orders: n } = backgroundOf(data);
  if (!rows.length) return null;
  if (2 ** columns.length * rows.length <= MOST_TRIED) return ofAllOrders(model, data, state, mix, columns, rows);
  const orders = ordersOf(columns, n), values = data.columns.map(() => 0), squares = data.columns.map(() => 0);
  let base = 0;
  for (let k = 0; k < orders.length; k += 2) {
    const start = rows[(k / 2) % rows.length], first = mixed(mix, model.predict(start, state.muted).outputs);
    const pair = data.columns.map(() => 0);
    for (const order of orders.slice(k, k + 2)) {
      const now = [...start];
      let before = first;
      for (const i of order) {
        if (now[i] !== state.values[i]) {
          now[i] = state.values[i];
          const after = mixed(mix, model.predict(now, state.muted).outputs);
          pair[i] += (after - before) / 2;
          before = after;
        }
      }
    }
    base += (2 * first) / orders.length;
    pair.forEach((value, i) => { values[i] += (2 * value) / orders.length; squares[i] += value * value; });
  }
  const pairs = orders.length / 2;
  const errors = values.map((value, i) => (pairs > 1 ? Math.sqrt(Math.max(0, squares[i] / pairs - value * value) / (pairs - 1)) : null));
  return { base, values, errors, columns, rows: rows.length };
}

// The same over all orders, by what is predicted with each set of columns replaced.
function ofAllOrders(model, data, state, mix, columns, rows) {
  const d = columns.length, said = Array.from({ length: 2 ** d }, (_, set) => {
    const outputs = rows.map((row) => {
      const now = [...row];
      columns.forEach((i, k) => { if ((set >> k) & 1) now[i] = state.values[i]; });
      return mixed(mix, model.predict(now, state.muted).outputs);
    });
    return outputs.reduce((sum, value) => sum + value, 0) / rows.length;
  });
  const sizes = said.map((_, set) => columns.filter((_, k) => (set >> k) & 1).length);
  // How many orders have exactly so many columns before this one, as a part of all orders and of all such sets.
  const parts = [1 / d];
  for (let n = 1; n < d; n++) parts.push((parts[n - 1] * n) / (d - n));
  const values = data.columns.map(() => 0);
  columns.forEach((i, k) => said.forEach((value, set) => { if (!((set >> k) & 1)) values[i] += parts[sizes[set]] * (said[set | (1 << k)] - value); }));
  return { base: said[0], values, errors: null, columns, rows: rows.length };
}
