// The page of plans, side by side.
const { plans } = data;

function comparison() {
  const rows = [['step', stepText], ['split', f => f.split], ['devices', f => f.devices], ['micro-batches', f => `${f.micro_batches} of ${f.micro_batch_samples}`],
    ['schedule', f => f.schedule], ['method', f => f.method], ...PARTS.map(([name, member]) => [name, f => `${seconds(f.time[member])} (${percent(f.time[member] / f.step_s)})`]),
    ['memory of the fullest device', f => bytes(Math.max(...f.stages.map(s => s.memory ? s.memory.total_bytes : 0)))],
    ['samples a second', f => (f.micro_batches * f.micro_batch_samples / f.step_s).toPrecision(4)], ['lower bound', f => seconds(f.bound.lower_bound_s)]];
  return table('the plans side by side; parts of the step are means over the devices', [[''], ...plans.map((p, i) => [make('a', { href: '#plan-' + i }, p.title)])],
    rows.map(([name, value]) => row(name, ...plans.map(p => value(p.facts)))), { class: 'comparison' });
}

document.title = plans.map(p => p.title).join(', ');
document.getElementById('page').append(make('h1', {}, plans.length > 1 ? 'Plans side by side' : 'Plan of ' + plans[0].facts.model), comparison(), ...plans.map(planSection), legend());
addEventListener('beforeprint', () => document.querySelectorAll('details').forEach(d => d.open = true));
