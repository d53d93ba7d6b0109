// A plan: its stages, timeline, memory, layouts and candidates.

const PARTS = [['compute', 'compute_s'], ['collectives', 'collectives_s'], ['transfers', 'transfers_s'], ['idle', 'idle_s']];
const MEMORY = ['parameters', 'optimizer', 'gradients', 'activations', 'workspace'];

function axis(group, width, left, height, end_s) {
  for (let i = 0; i <= 5; ++i) {
    const x = left + (width - left - 30) * i / 5;
    group.append(draw('line', { x1: x, x2: x, y1: 0, y2: height - 16, class: 'grid' }),
      draw('text', { x, y: height - 3, 'text-anchor': i ? 'middle' : 'start' }, seconds(end_s * i / 5)));
  }
}

function partsOfStep(facts) {
  const stages = facts.stages.filter(stage => stage.time), width = 1000, left = 70, line = 18;
  const svg = draw('svg', { viewBox: `0 0 ${width} ${stages.length * line + 18}`, role: 'img', 'aria-label': 'parts of the step of each stage; the table above has the figures' });
  axis(svg, width, left, stages.length * line + 18, facts.step_s);
  stages.forEach((stage, i) => {
    svg.append(draw('text', { x: 0, y: i * line + 12 }, 'stage ' + stage.stage));
    let x = left;
    for (const [name, member] of PARTS) {
      const length = (width - left - 30) * stage.time[member] / facts.step_s;
      svg.append(draw('rect', { x, y: i * line + 2, width: Math.max(0, length), height: line - 5, fill: `var(--${name})` },
        draw('title', {}, `stage ${stage.stage}: ${name} ${seconds(stage.time[member])}`)));
      x += length;
    }
  });
  return svg;
}

const KINDS = { forward: 'forward', backward: 'backward', 'backward-inputs': 'backward', 'backward-weights': 'weights', update: 'update' };
const kindColor = kind => KINDS[kind] || (kind.includes('weight') ? 'weights' : 'backward');

function timeline(picture) {
  const width = 1000, left = 70, line = picture.meshes.length > 24 ? 12 : 20, scale = (width - left - 30) / picture.step_s;
  const height = picture.meshes.length * line + 18;
  const svg = draw('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'timeline of the simulated step, a lane for each mesh' });
  axis(svg, width, left, height, picture.step_s);
  picture.meshes.forEach((mesh, i) => {
    svg.append(draw('text', { x: 0, y: i * line + line / 2 + 4 }, stageNames(mesh.stages)));
    const bars = mesh.bars;
    bars.start_s.forEach((start, b) => {
      const length = (bars.end_s[b] - start) * scale, x = left + start * scale, micro = bars.micro_batch[b];
      svg.append(draw('rect', { x: x.toFixed(2), y: i * line + 1, width: Math.max(.3, length - .4).toFixed(2), height: line - 3, fill: `var(--${kindColor(bars.kind[b])})` },
        draw('title', {}, `${bars.kind[b]}${micro < 0 ? '' : ' of micro-batch ' + micro}: ${seconds(start)} to ${seconds(bars.end_s[b])}; compute ${seconds(bars.compute_s[b])}, collectives ${seconds(bars.collectives_s[b])}, transfers ${seconds(bars.transfers_s[b])}`)));
      if (micro >= 0 && length > 14) svg.append(draw('text', { x: x + length / 2, y: i * line + line / 2 + 3, 'text-anchor': 'middle', 'pointer-events': 'none' }, micro));
    });
  });
  return svg;
}

function memoryOverTime(picture, stages) {
  const width = 1000, left = 150, line = 44, height = picture.meshes.length * line + 18, scale = (width - left - 30) / picture.step_s;
  const svg = draw('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'memory in use over time of each mesh; the table above has its parts' });
  axis(svg, width, left, height, picture.step_s);
  picture.meshes.forEach((mesh, i) => {
    const capacity = stages[mesh.stages[0]].device_memory_bytes, most = Math.max(...mesh.memory.bytes), floor = (i + 1) * line - 4, tall = line - 10;
    const y = value => (floor - tall * value / Math.max(most, capacity)).toFixed(1);
    let path = `M${left},${floor}`, last = 0;
    mesh.memory.at_s.forEach((at, b) => { path += `L${left + at * scale},${y(last)}L${left + at * scale},${y(last = mesh.memory.bytes[b])}`; });
    path += `L${left + picture.step_s * scale},${y(last)}L${left + picture.step_s * scale},${floor}Z`;
    svg.append(draw('path', { d: path, fill: 'var(--forward)' }),
      draw('line', { x1: left, x2: width - 30, y1: y(capacity), y2: y(capacity), stroke: 'var(--collectives)', 'stroke-dasharray': '4 3' }),
      draw('text', { x: 0, y: floor - tall / 2 + 4 }, `${stageNames(mesh.stages)}: ${bytes(most)}`));
  });
  return svg;
}

function stagesTable(facts) {
  return table('stages', [['stage', true], ['layers'], ['devices'], ['split'], ['recompute/offload'], ['compute', true], ['collectives', true], ['transfers', true], ['idle', true]],
    facts.stages.map(s => row(s.stage, `${s.first_layer} – ${s.last_layer}: ${s.first_layer_name} … ${s.last_layer_name}`,
      `${s.devices}: ${s.first_device} – ${s.first_device + s.devices - 1}${s.parts.length ? ` (${s.parts.join(' + ')})` : ''}`, s.split, s.recompute,
      ...PARTS.map(([, member]) => s.time ? seconds(s.time[member]) : `as ${s.figures_at_stage}`))), { class: 'stages' });
}

function memoryTable(facts) {
  return table(`memory per device${facts.cluster.parts.length ? '' : ', of ' + bytes(facts.cluster.memory_bytes)}`, [['stage', true], ['all', true], ['full', true], ...MEMORY.map(name => [name, true]), ['micro-batches in flight', true]],
    facts.stages.filter(s => s.memory).map(s => row(s.stage, bytes(s.memory.total_bytes), percent(s.memory.total_bytes / s.device_memory_bytes),
      ...MEMORY.map(name => bytes(s.memory[name + '_bytes'])), s.memory.micro_batches_in_flight)), { class: 'memory' });
}

function shardings(facts) {
  return facts.stages.map((s, i) => {
    const others = [['optimizer state', s.optimizer_otherwise], ['sum of gradients', s.gradients_otherwise], ['saved activation', s.activations_split]];
    const rows = s.parameters.map(p => row(p.name, 'parameter', p.count, p.type, p.spec, p.layout));
    for (const [what, groups] of others)
      for (const g of groups) rows.push(row(g.names.slice(0, 4).join(', ') + (g.names.length > 4 ? ` and ${g.names.length - 4} more` : ''), what, g.count, '', '', g.layout));
    return make('details', i === 0 ? { open: '' } : {}, make('summary', {}, `stage ${s.stage}: layers ${s.first_layer} – ${s.last_layer}, mesh ${s.mesh.join(' × ') || '1'}, ${s.split}`),
      table('tensors', [['name'], ['what'], ['count', true], ['type'], ['spec'], ['layout']], rows, { class: 'shardings' }));
  });
}

function candidates(facts) {
  return table('plans that were tried', [['method'], ['step', true], ['memory', true], ['verdict']],
    facts.candidates.map(c => ({ ...row(c.method, seconds(c.step_s), bytes(c.memory_bytes), c.verdict), chosen: c.verdict.startsWith('chosen') })), { class: 'candidates' });
}

function schedules(facts) {
  const rows = facts.candidates.filter(c => c.schedule !== null).map(c => ({ ...row(c.schedule, seconds(c.step_s), bytes(c.memory_bytes), c.verdict), chosen: c.verdict.startsWith('chosen') }));
  return rows.length ? [make('h3', {}, 'Schedules'), table('the same stages under each schedule', [['schedule'], ['step', true], ['memory', true], ['verdict']], rows, { class: 'schedules' })] : [];
}

function whatIf(steps) {
  const before = steps[0].step_s, left = s => bytes(Math.abs(s.spare_bytes)) + (s.fits ? ' left' : ' too little');
  return table('the same plan, simulated with other figures of its cluster', [['with'], ['step', true], ['change', true], ['memory of the fullest device', true], ['of', true], ['', true], ['binds']],
    steps.map((s, i) => ({ ...row(s.with, seconds(s.step_s), i === 0 ? '' : (s.step_s > before ? '+' : '') + percent(s.step_s / before - 1),
      bytes(s.fullest_bytes), bytes(s.memory_bytes), left(s), s.binds), chosen: i === 0 })), { class: 'what-if' });
}

function constraints(facts) {
  if (!facts.constraints.length) return [];
  const price = without => {
    if (without === null) return 'not known';
    const more = (100 * (facts.step_s / without - 1)).toFixed(2);
    return more > 0 ? `+${more} %` : 'free';
  };
  const line = (text, where, without) => row(text, where, seconds(without), price(without));
  const rows = facts.constraints.map(c => line(c.constraint, c.where, c.step_without_s));
  if (rows.length > 1) rows.push(line('all of them', '', facts.unconstrained_step_s));
  return [make('h3', {}, 'Constraints'), table('constraints that the plan meets: step time found without each, with the same effort, and its price',
    [['constraint'], ['where'], ['step without', true], ['price', true]], rows, { class: 'constraints' })];
}

function boundText(facts) {
  const b = facts.bound;
  if (b.lower_bound_s === null) return 'No lower bound is known.';
  return `At most ${percent(b.gap)} above the best of ${b.covers}: none of them takes less than ${seconds(b.lower_bound_s)}.`;
}

function bindsText(facts) {
  const b = facts.binds, full = b.stages_nearly_full;
  return `Binds: ${b.text} (${seconds(b.work_s)} of work, ${seconds(b.mean_work_s)} on average)`
    + (full.length ? `; memory on ${stageNames(full)} (up to ${(100 * b.fullest_share).toFixed(0)} % full)` : '') + '.';
}

function stepText(facts) {
  return seconds(facts.step_s) + (facts.step_error_s ? ` ± ${seconds(facts.step_error_s)}` : '');
}

function planSection({ title, remark, facts, picture, what_if }, n) {
  const drawn = picture.micro_batches < facts.micro_batches
    ? `Drawn with ${picture.micro_batches} of ${facts.micro_batches} micro-batches: warm-up, some of the steady state, drain; the rest of the steady state is left out.`
    : `All ${facts.micro_batches} micro-batches.`;
  return make('section', { id: 'plan-' + n }, make('h2', {}, title),
    make('p', {}, `${facts.model} on ${facts.devices} devices of ${facts.cluster.name} (${facts.cluster.device}): ${facts.split}, ${facts.micro_batches} micro-batches of ${facts.micro_batch_samples}, schedule ${facts.schedule}, by ${facts.method}${facts.lossy ? `; ${facts.lossy}` : ''}${facts.stale ? `; ${facts.stale}` : ''}.`),
    make('p', {}, `Predicted step ${stepText(facts)}, costs ${facts.costs}. ${bindsText(facts)}`),
    make('p', { class: 'bound' }, boundText(facts) + (facts.cut_short ? ' The search was cut short.' : '')), ...constraints(facts),
    make('h3', {}, 'Stages'), stagesTable(facts), key(PARTS.map(([name]) => [name, name])), partsOfStep(facts),
    make('h3', {}, 'Timeline of the step'), make('p', { class: 'soft' }, drawn + ' ' + remark),
    key([['forward', 'forward'], ['backward', 'backward'], ['weights', 'backward of weights'], ['update', 'update']]), timeline(picture),
    make('h3', {}, 'Memory'), memoryTable(facts),
    make('p', { class: 'soft' }, 'In use over the same time, approximately: what stays, and an equal share of the activations for each micro-batch in flight. The table has the exact peaks; the dashed line is what a device has.'),
    memoryOverTime(picture, facts.stages),
    make('h3', {}, 'What if'), whatIf(what_if),
    make('p', { class: 'soft' }, 'The plan is kept as it is: planning anew for such a cluster may find a better one. ' + remark),
    make('h3', {}, 'Shardings'), ...shardings(facts), ...schedules(facts), make('h3', {}, 'Candidates'), candidates(facts));
}

function legend() {
  return make('details', { class: 'legend' }, make('summary', {}, 'Words, symbols and units'),
    table('what they stand for', [['as in'], ['meaning']], data.legend.map(({ term, meaning }) => row(term, meaning))));
}
