// The page of a sweep: how a model scales on each cluster, and what it costs.
const { clusters, cheapest, target_step_s: target } = data;
const COLORS = ['compute', 'collectives', 'update', 'transfers', 'weights', 'forward'];
const colorOf = i => `var(--${COLORS[i % COLORS.length]})`;
const hasTokens = data.batch_tokens !== null;
const isChosen = (c, r) => cheapest !== null && cheapest.cluster === c && clusters[c].rows[r].devices === cheapest.devices;
const fewWords = text => text.slice(text.lastIndexOf(': ') + 1).trim();
const costs = r => r.costs + (r.estimated_operators ? `, ${r.estimated_operators} operators estimated` : '');
function rate(r) {
  let value = hasTokens ? r.tokens_per_s : r.samples_per_s, prefix = 0;
  for (; value >= 1000 && prefix < 4; ++prefix) value /= 1000;
  return value.toPrecision(4) + ['', ' k', ' M', ' G', ' T'][prefix];
}

// Values with a grid line between low and high: powers of the base; of ten also some between, finer where few fall in.
function ticks(low, high, base) {
  const between = steps => {
    const values = [];
    for (let power = base ** Math.floor(Math.log(low) / Math.log(base)); power <= high; power *= base)
      values.push(...steps.map(step => power * step).filter(value => value >= low && value <= high));
    return values;
  };
  if (base !== 10) return between([1]);
  const coarse = between([1, 2, 5]);
  return coarse.length > 3 ? coarse : between([1, 1.5, 2, 3, 4, 5, 6, 8]);
}

// A plot with logarithmic axes. points: [{series, x, y, title, chosen}]; lines: [{y, text}], across; guides: [[from x, y], [to x, y], series].
function plot(label, points, { xLabel, xText, yText, xBase = 2, lines = [], guides = [] }) {
  const width = 620, height = 300, left = 76, right = 20, top = 10, bottom = 34;
  const range = values => { const low = Math.min(...values), high = Math.max(...values); return low === high ? [low / 2, high * 2] : [low / 1.15, high * 1.15]; };
  const [x0, x1] = range(points.map(p => p.x)), [y0, y1] = range([...points.map(p => p.y), ...lines.map(l => l.y), ...guides.flatMap(([a, b]) => [a[1], b[1]])]);
  const at = (v, low, high, from, to) => from + (to - from) * Math.log(v / low) / Math.log(high / low);
  const x = v => at(v, x0, x1, left, width - right).toFixed(1), y = v => at(v, y0, y1, height - bottom, top).toFixed(1);
  const svg = draw('svg', { viewBox: `0 0 ${width} ${height}`, width, role: 'img', 'aria-label': label + '; the tables above have the figures' });
  for (const v of ticks(x0, x1, xBase)) svg.append(draw('line', { x1: x(v), x2: x(v), y1: top, y2: height - bottom, class: 'grid' }),
    draw('text', { x: x(v), y: height - bottom + 14, 'text-anchor': 'middle' }, xText(v)));
  for (const v of ticks(y0, y1, 10)) svg.append(draw('line', { x1: left, x2: width - right, y1: y(v), y2: y(v), class: 'grid' }),
    draw('text', { x: left - 6, y: +y(v) + 4, 'text-anchor': 'end' }, yText(v)));
  for (const { y: v, text } of lines) svg.append(draw('line', { x1: left, x2: width - right, y1: y(v), y2: y(v), stroke: 'var(--text)', 'stroke-dasharray': '5 4' }),
    draw('text', { x: width - right, y: +y(v) - 4, 'text-anchor': 'end' }, text));
  for (const [[ax, ay], [bx, by], series] of guides)
    svg.append(draw('line', { x1: x(ax), y1: y(ay), x2: x(bx), y2: y(by), stroke: colorOf(series), 'stroke-dasharray': '2 4' }));
  clusters.forEach((cluster, c) => {
    const own = points.filter(p => p.series === c);
    if (own.length > 1) svg.append(draw('path', { d: 'M' + own.map(p => `${x(p.x)},${y(p.y)}`).join('L'), fill: 'none', stroke: colorOf(c), 'stroke-width': 2 }));
    for (const p of own) svg.append(draw('circle', { cx: x(p.x), cy: y(p.y), r: p.chosen ? 7 : 4, fill: colorOf(c), stroke: 'var(--back)' }, draw('title', {}, p.title)));
  });
  svg.append(draw('text', { x: (left + width - right) / 2, y: height - 4, 'text-anchor': 'middle' }, xLabel));
  return svg;
}

function pointsOf(x, y) {
  return clusters.flatMap((cluster, c) => cluster.rows.flatMap((r, i) => !r.fits || y(r, c) === null ? [] : [{
    series: c, x: x(r, c), y: y(r, c), chosen: isChosen(c, i), title: `${cluster.name}, ${r.devices} devices: ${seconds(r.step_s)} a step, ${r.split}` }]));
}

// Steps as short as the first row's devices would make them if all others were as well used.
function ideals() {
  return clusters.flatMap((cluster, c) => {
    const fitting = cluster.rows.filter(r => r.fits), first = fitting[0], last = fitting[fitting.length - 1];
    return fitting.length < 2 ? [] : [[[first.devices, first.step_s], [last.devices, first.step_s * first.devices / last.devices], c]];
  });
}

function clusterTable(cluster, c) {
  const priced = cluster.price_per_node_hour !== null;
  const columns = [['devices', true], ['step', true], [hasTokens ? 'tokens/s' : 'samples/s', true], ['efficiency', true], ['gap to the bound', true], ['memory per device', true]];
  if (priced) columns.push(['price of 1000 steps', true]);
  columns.push(['micro-batches', true]);
  if (data.measured_on !== null) columns.push(['costs']);
  columns.push(['plan']);
  const rows = cluster.rows.map((r, i) => {
    const cells = !r.fits ? [r.devices, ...Array(columns.length - 2).fill('–'), 'does not fit: ' + fewWords(r.lacks)]
      : [r.devices, seconds(r.step_s), rate(r), percent(r.efficiency), r.gap === null ? '–' : percent(r.gap), bytes(r.memory_bytes),
        ...(priced ? [r.price_per_1000_steps.toFixed(2)] : []), r.micro_batches, ...(data.measured_on !== null ? [costs(r)] : []), r.split + (r.cut_short ? ', search cut short' : '')];
    return { ...row(...cells), chosen: isChosen(c, i) };
  });
  return table(`${cluster.name}: nodes of ${cluster.devices_per_node} × ${cluster.device}, ${bytes(cluster.memory_bytes)} each` + (priced ? `, ${cluster.price_per_node_hour} an hour and node` : ''), columns, rows, { class: 'scaling' });
}

function targetText() {
  if (target === null) return '';
  if (cheapest === null) return `None reaches the target of ${seconds(target)} a step.`;
  const cluster = clusters[cheapest.cluster], r = cluster.rows.find(r => r.devices === cheapest.devices), priced = clusters.every(c => c.price_per_node_hour !== null);
  return `${priced ? 'Cheapest' : 'Fewest devices'} for the target of ${seconds(target)} a step: ${r.devices} devices of ${cluster.name}, ${r.split}, ${seconds(r.step_s)} a step`
    + (priced ? `, ${r.price_per_1000_steps.toFixed(2)} for 1000 steps` : '') + (data.steps === null ? '.' : `; ${seconds(data.steps * r.step_s)} for ${data.steps} steps.`);
}

const plainNumber = v => (+v.toPrecision(6)).toLocaleString('en');
const allPriced = pointsOf(r => r.step_s, r => r.price_per_1000_steps ?? null);
const anyFits = clusters.some(c => c.rows.some(r => r.fits));
document.title = 'Scaling of ' + data.model;
document.getElementById('page').append(...[make('h1', {}, 'Scaling of ' + data.model),
  make('p', {}, `${data.batch_samples} samples` + (hasTokens ? ` (${data.batch_tokens} tokens)` : '') + ' a step; every step is predicted by the simulator.'),
  data.measured_on === null ? null : make('p', {}, `Costs were measured on ${data.measured_on}, and are extrapolated to more or others.`),
  target === null ? null : make('p', { class: 'target' }, targetText()), ...clusters.map(clusterTable),
  anyFits ? key(clusters.map((c, i) => [COLORS[i % COLORS.length], c.name])) : null,
  anyFits ? make('h3', {}, 'Step over devices') : null,
  anyFits ? make('p', { class: 'soft' }, 'Dotted: as if every further device were as well used as the first that fit.') : null,
  anyFits ? plot('step over devices', pointsOf(r => r.devices, r => r.step_s), { xLabel: 'devices', xText: plainNumber, yText: seconds, guides: ideals(), lines: target === null ? [] : [{ y: target, text: 'target' }] }) : null,
  allPriced.length ? make('h3', {}, 'Price of 1000 steps over the step') : null,
  allPriced.length ? plot('price over the step', allPriced, { xLabel: 'seconds of a step', xBase: 10, xText: seconds, yText: plainNumber }) : null].filter(part => part !== null));
