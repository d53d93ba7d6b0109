// The page of a run: its figures, its curves over the steps, and its plan.
const { run, plans, title } = data;

const short = value => value === null ? '–' : value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6) ? value.toExponential(1) : String(+value.toPrecision(4));
const whole = value => Math.round(value).toLocaleString('en');

// About `count` round numbers from `low` to `high`.
function ticks(low, high, count) {
  const raw = (high - low) / count || 1, scale = 10 ** Math.floor(Math.log10(raw));
  const step = scale * [1, 2, 5, 10].find(times => times * scale >= raw);
  const all = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-6; at += step) all.push(at);
  return all;
}

// series: {name, color, x, y, dots, dashed}; what is null in y is left out.
function chart(name, format, series) {
  const width = 1000, height = 230, left = 80, right = 20, top = 10, bottom = 34;
  const known = series.map(s => s.x.map((x, i) => [x, s.y[i]]).filter(([, y]) => y !== null)).map((points, i) => ({ ...series[i], points }));
  const ys = known.flatMap(s => s.points.map(([, y]) => y));
  if (!ys.length) return [];
  let low = Math.min(...ys), high = Math.max(...ys);
  if (low > 0 && low < high * .5) low = 0;
  if (low === high) { low -= Math.abs(low) * .1 || 1; high += Math.abs(high) * .1 || 1; }
  const first = run.step[0], last = Math.max(run.last_step, first + 1);
  const x = step => left + (width - left - right) * (step - first) / (last - first);
  const y = value => height - bottom - (height - top - bottom) * (value - low) / (high - low);
  const svg = draw('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': name + ' over the steps' });
  for (const at of ticks(low, high, 5))
    svg.append(draw('line', { x1: left, x2: width - right, y1: y(at), y2: y(at), class: 'grid' }), draw('text', { x: left - 8, y: y(at) + 4, 'text-anchor': 'end' }, format(at)));
  for (const at of ticks(first, last, 8)) svg.append(draw('text', { x: x(at), y: height - 16, 'text-anchor': 'middle' }, whole(at)));
  svg.append(draw('text', { x: width - right, y: height - 2, 'text-anchor': 'end' }, 'steps'));
  for (const at of run.first_of_job.slice(1))
    svg.append(draw('line', { x1: x(at), x2: x(at), y1: top, y2: height - bottom, stroke: 'var(--collectives)', 'stroke-dasharray': '2 3' }, draw('title', {}, `a job went on with step ${at}`)));
  for (const s of known) {
    if (s.dots || s.points.length === 1)
      for (const [at, value] of s.points) svg.append(draw('circle', { cx: x(at).toFixed(1), cy: y(value).toFixed(1), r: 3.5, fill: `var(--${s.color})` }, draw('title', {}, `${s.name} ${format(value)} after step ${at}`)));
    else
      svg.append(draw('polyline', { points: s.points.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(' '), fill: 'none', stroke: `var(--${s.color})`, 'stroke-width': 1.6, ...(s.dashed ? { 'stroke-dasharray': '6 4' } : {}) }));
  }
  return [make('h3', {}, name), known.length > 1 ? key(known.map(s => [s.color, s.name])) : null, svg];
}

function figures() {
  const isOfTokens = run.tokens > 0, done = isOfTokens ? run.tokens : run.samples, unit = isOfTokens ? 'tokens' : 'samples';
  const lastLoss = run.loss.filter(value => value !== null).at(-1) ?? null, jobs = run.first_of_job;
  const rows = [row('steps', whole(run.last_step)), row('jobs', jobs.length === 1 ? '1' : `${jobs.length}: they began with steps ${jobs.map(whole).join(', ')}`),
    row(unit, `${whole(done)}, ${whole(done / run.seconds)} a second`), row('time in steps', seconds(run.seconds)),
    row('step', `${seconds(run.median_step_s)} (median)` + (run.predicted_s === null ? '' : `; predicted ${seconds(run.predicted_s)}, ratio ${(run.median_step_s / run.predicted_s).toFixed(2)}`)),
    row('waited for data', `${seconds(run.waited_for_data_s)} (${percent(run.waited_for_data_s / run.seconds)} of the time in steps)`),
    row('stood still for saves', seconds(run.stood_still_for_saves_s))];
  if (run.saved_s > 0) rows.push(row('checkpoints', `${bytes(run.saved_bytes)} in ${seconds(run.saved_s)}, ${bytes(run.saved_bytes / run.saved_s)}/s`));
  if (!run.emulated) rows.push(row('loss at the end', short(lastLoss)));
  if (run.evaluation_loss.length) rows.push(row('evaluation loss', `${short(run.evaluation_loss.at(-1))} after step ${whole(run.evaluated.at(-1))}, at best ${short(Math.min(...run.evaluation_loss))}`));
  return table('the run in figures', [[''], ['']], rows, { class: 'figures' });
}

// The most that a rank takes, beside what the plan says of the fullest device and what a device has.
function memory() {
  const most = Math.max(...run.memory_bytes.filter(value => value !== null)), bars = [['the fullest rank of the run', most]];
  for (const plan of plans) {
    const fullest = plan.facts.stages.filter(s => s.memory).reduce((a, b) => a.memory.total_bytes > b.memory.total_bytes ? a : b);
    bars.push(['the fullest device, planned', fullest.memory.total_bytes], ['what that device has', fullest.device_memory_bytes]);
  }
  const width = 1000, left = 230, line = 24, scale = (width - left - 110) / Math.max(...bars.map(([, value]) => value));
  const svg = draw('svg', { viewBox: `0 0 ${width} ${bars.length * line + 4}`, role: 'img', 'aria-label': 'memory' });
  bars.forEach(([name, value], i) => svg.append(draw('text', { x: 0, y: i * line + 15 }, name),
    draw('rect', { x: left, y: i * line + 3, width: Math.max(1, value * scale), height: line - 8, fill: `var(--${i === 2 ? 'idle' : i === 1 ? 'forward' : 'compute'})` }),
    draw('text', { x: left + value * scale + 6, y: i * line + 15 }, bytes(value))));
  return [make('h3', {}, 'Memory'), svg];
}

const rate = run.step_s.map((s, i) => s === null ? null : (run.tokens > 0 ? run.tokens : run.samples) / run.steps / s);
const line = (name, color, y, more = {}) => ({ name, color, x: run.step, y, ...more });
document.title = title;
document.getElementById('page').append(make('h1', {}, title), ...(run.emulated ? [make('p', {}, 'A rehearsal on emulated devices: nothing was learnt.')] : []), figures(),
  make('p', { class: 'soft' }, (run.step.length < run.steps ? `Curves have ${run.step.length} points, each the mean of ${Math.ceil(run.steps / run.step.length)} steps. ` : '') + (run.first_of_job.length > 1 ? 'Dotted upright lines: a job went on.' : '')),
  ...[...chart('Loss', short, [line('training', 'compute', run.loss), { name: 'evaluation', color: 'collectives', x: run.evaluated, y: run.evaluation_loss, dots: true }]),
    ...chart('Learning rate', short, [line('learning rate', 'transfers', run.learning_rate)]), ...chart('Gradient norm', short, [line('gradient norm', 'weights', run.gradient_norm)]),
    ...chart(run.tokens > 0 ? 'Tokens a second' : 'Samples a second', short, [line('rate', 'update', rate)]),
    ...chart('Step time', seconds, [line('measured', 'compute', run.step_s), line('predicted', 'collectives', run.predicted_step_s, { dashed: true })]), ...memory()].filter(part => part !== null),
  ...plans.map((plan, i) => planSection({ ...plan, title: 'The plan: ' + plan.title }, i)), ...(plans.length ? [legend()] : []));
addEventListener('beforeprint', () => document.querySelectorAll('details').forEach(d => d.open = true));
