#include "libalpa/solver/selection/neighbourhood_lane.h"

#include <algorithm>
#include <cmath>

namespace alpa {

NeighbourhoodView::NeighbourhoodView(const SelectionNetwork& given,
                                     const std::vector<std::vector<int>>& edges_at,
                                     const std::vector<double>& prices, Memory how)
    : network(given), incident(edges_at), price(prices), memory(how), paid(priced_costs(given, prices)) {
  for (std::size_t i = 0; i < paid.size(); ++i)
    for (std::size_t a = 0; a < paid[i].size(); ++a) paid[i][a] -= network.nodes[i].cost[a];
}

namespace {

// The order of magnitude of a price where none is known; more than 0.
double cost_per_byte(const SelectionNetwork& network) {
  double sum = 0, bytes = 1;
  for (const auto& node : network.nodes) sum += *std::max_element(node.cost.begin(), node.cost.end());
  for (std::int64_t capacity : network.capacity) bytes = std::max(bytes, static_cast<double>(capacity));
  return std::max(sum, 1e-300) / static_cast<double>(network.nodes.size()) / bytes;
}

}  // namespace

NeighbourhoodLane::NeighbourhoodLane(const NeighbourhoodView& view, std::uint64_t seed)
    : view_(view),
      network_(view.network),
      seed_(seed),
      local_search_(view.network, view.incident),
      regions_(view.network, view.incident),
      base_cost_(view.network.nodes.size()),
      node_cost_(view.network.nodes.size()),
      is_member_(view.network.nodes.size(), 0) {
  double dearest = view.price.empty() ? 0 : *std::max_element(view.price.begin(), view.price.end());
  if (dearest == 0) dearest = cost_per_byte(network_);
  const bool is_limited = view.memory == NeighbourhoodView::Memory::limited;
  for (double price : view.price) weight_.push_back(is_limited ? 2 * price + 0.05 * dearest : 0);
  for (const bool is_crowded : {false, true})
    for (int size = 6; size == 6 || size < 2 * std::ssize(network_.nodes); size *= 2)
      for (const double cells : {3e3, 3e4, 3e5})
        if (cells < 1e4 || size >= 24) arms_.push_back({is_crowded, size, cells});
}

void NeighbourhoodLane::start_from(const std::vector<int>& choice) {
  local_search_.start_from(choice);
  cost_ = network_cost(network_, choice);
  for (std::size_t i = 0; i < choice.size() && view_.memory == NeighbourhoodView::Memory::paid; ++i)
    cost_ += view_.paid[i][choice[i]];
  overload_ = penalty();
  sum_overloads();
  best_ = {};
  if (local_search_.fits()) best_.offer(choice, cost_);
}

double NeighbourhoodLane::penalty() const {
  const auto& free = local_search_.free();
  double sum = 0;
  for (std::size_t t = 0; t < free.size(); ++t)
    if (free[t] < 0) sum -= weight_[t] * static_cast<double>(free[t]);
  return sum;
}

void NeighbourhoodLane::sum_overloads() {
  const auto& free = local_search_.free();
  overload_price_.assign(free.size() + 1, 0);
  for (std::size_t t = 0; t < free.size(); ++t)
    overload_price_[t + 1] = overload_price_[t] + (free[t] < 0 ? weight_[t] : 0);
}

void NeighbourhoodLane::adapt_penalties(double work) {
  constexpr double period = 2e6, patience = 6e7;
  since_adapted_ += work;
  since_gain_ = gained_ > 0 ? 0 : since_gain_ + work;
  if (since_adapted_ < period) return;
  since_adapted_ = 0;
  if (overload_ > 0) {
    for (std::size_t t = 0; t < weight_.size(); ++t)
      if (local_search_.free()[t] < 0) weight_[t] *= 1.3;
  } else if (since_gain_ > patience) {
    since_gain_ = 0;
    for (double& weight : weight_) weight *= 0.5;
  }
  overload_ = penalty();
  sum_overloads();
}

std::vector<Switches> NeighbourhoodLane::walk(double work, const Deadline& deadline) {
  constexpr double work_per_attempt = 1e4;  // of finding the region and its order, in table entries
  steps_.clear();
  double done = 0;
  while (done < work && !deadline.passed()) {
    Dice dice(seed_, number_++);
    // Half of the attempts go to whom gained most for its work of late.
    std::size_t chosen = dice.below(static_cast<int>(arms_.size()));
    if (dice.uniform() < 0.6) {
      double best = -1;
      for (std::size_t k = 0; k < arms_.size(); ++k) {
        const double rate = arms_[k].gain / (arms_[k].work + 1e5) * (0.5 + dice.uniform());
        if (rate > best) best = rate, chosen = k;
      }
    }
    Arm& arm = arms_[chosen];
    gained_ = 0;
    const double spent = work_per_attempt + attempt(arm, dice, deadline);
    constexpr double memory_of_work = 2e7;
    const double keep = std::exp(-spent / memory_of_work);
    arm.gain = keep * arm.gain + gained_;
    arm.work = keep * arm.work + spent;
    done += spent;
    adapt_penalties(spent);
  }
  return std::move(steps_);
}

std::vector<int> NeighbourhoodLane::draw_region(const Arm& arm, Dice& dice) {
  return arm.is_crowded ? regions_.crowded(arm.size, local_search_.free(), dice)
                        : regions_.connected(arm.size, dice);
}

// Costs of the members' strategies while all others keep theirs.
void NeighbourhoodLane::gather(const std::vector<int>& members) {
  for (int node : members) {
    auto& cost = base_cost_[node];
    cost = network_.nodes[node].cost;
    if (overload_ > 0)
      for (const auto& piece : network_.nodes[node].pieces) {
        const double rate = overload_price_[piece.end] - overload_price_[piece.begin];
        for (std::size_t a = 0; a < cost.size() && rate > 0; ++a)
          cost[a] += rate * static_cast<double>(piece.memory[a]);
      }
    for (int e : view_.incident[node]) {
      const auto& edge = network_.edges[e];
      const int other = other_end(edge, node);
      if (!is_member_[other]) add_edge_costs(network_, edge, node, local_search_.choice()[other], cost);
    }
  }
}

double NeighbourhoodLane::attempt(Arm& arm, Dice& dice, const Deadline& deadline) {
  const auto region = draw_region(arm, dice);
  Elimination elimination(network_, view_.incident, region,
                          {.table_cells = arm.table_cells,
                           .total_work = std::min(3e7, std::max(20.0, 0.1 * arm.size) * arm.table_cells)});
  const auto& members = elimination.members();
  if (members.empty()) return 0;
  for (int i : members) is_member_[i] = 1;
  gather(members);
  if (dice.uniform() < 0.3) {  // what else would be best with this node forced to change?
    const int node = members[dice.below(static_cast<int>(members.size()))];
    if (network_.strategies(node) > 1) base_cost_[node][local_search_.choice()[node]] = infinity;
  }
  double work = 0;
  const bool is_paid = view_.memory == NeighbourhoodView::Memory::paid;
  double scale = is_paid ? 1 : network_.capacity.empty() ? 0 : scale_ * std::exp2(2 * dice.uniform() - 1);
  constexpr int max_scales = 4;
  for (int k = 0; k < max_scales; ++k) {
    for (int i : members) {
      node_cost_[i] = base_cost_[i];
      for (std::size_t a = 0; a < node_cost_[i].size(); ++a) node_cost_[i][a] += scale * view_.paid[i][a];
    }
    auto choice = local_search_.choice();
    elimination.minimise(node_cost_, choice);
    work += elimination.work();
    const Outcome outcome = take_over(members, choice, deadline);
    if (outcome == Outcome::taken || is_paid || scale == 0) break;
    scale *= outcome == Outcome::too_large ? 1.6 : 0.6;
    scale_ = std::clamp(scale_ * (outcome == Outcome::too_large ? 1.02 : 0.99), 0.02, 4.0);
    if (outcome != Outcome::too_large && k > 0) break;
  }
  for (int i : members) is_member_[i] = 0;
  return work;
}

// Of the members and the edges at them.
double NeighbourhoodLane::local_cost(const std::vector<int>& members) const {
  const auto& choice = local_search_.choice();
  double cost = 0;
  for (int i : members) {
    cost += network_.nodes[i].cost[choice[i]];
    if (view_.memory == NeighbourhoodView::Memory::paid) cost += view_.paid[i][choice[i]];
    for (int e : view_.incident[i]) {
      const auto& edge = network_.edges[e];
      if (is_member_[other_end(edge, i)] && edge.from != i) continue;
      cost += edge.cost[static_cast<std::size_t>(choice[edge.from]) * network_.strategies(edge.to) +
                        choice[edge.to]];
    }
  }
  return cost;
}

NeighbourhoodLane::Outcome NeighbourhoodLane::take_over(const std::vector<int>& members,
                                                        const std::vector<int>& choice,
                                                        const Deadline& deadline) {
  const double before = local_cost(members);
  Switches earlier;
  for (int i : members) earlier.emplace_back(i, local_search_.choice()[i]);
  bool any = false;
  for (int i : members) {
    if (choice[i] == local_search_.choice()[i]) continue;
    local_search_.set(i, choice[i]);
    any = true;
  }
  if (!any) return Outcome::same;
  double over = penalty(), change = local_cost(members) - before;
  const bool heavier = over > overload_;
  if (over > 0 && change < 0) {
    local_search_.repair(deadline, members, 20);
    over = penalty();
  } else if (over == 0 && view_.memory == NeighbourhoodView::Memory::limited) {
    local_search_.improve(members);
  }
  change = local_cost(members) - before;
  const double noise = 1e-13 * std::abs(before);
  if (change + over - overload_ <= noise) {
    Switches step;
    for (const auto& [node, strategy] : earlier)
      if (local_search_.choice()[node] != strategy) step.emplace_back(node, local_search_.choice()[node]);
    gained_ += std::max(0.0, overload_ - over - change - noise);
    cost_ += change;
    if (over > 0 || overload_ > 0) {
      overload_ = over;
      sum_overloads();
    }
    if (over == 0 && cost_ < best_.cost - noise && local_search_.fits())
      best_.offer(local_search_.choice(), cost_);
    if (!step.empty()) steps_.push_back(std::move(step));
    return Outcome::taken;
  }
  for (const auto& [node, strategy] : earlier)
    if (local_search_.choice()[node] != strategy) local_search_.set(node, strategy);
  return heavier ? Outcome::too_large : Outcome::dearer;
}

void NeighbourhoodLane::follow(const Switches& step) {
  Switches earlier;
  double change = 0;
  for (const auto& [node, strategy] : step) {
    const int now = local_search_.choice()[node];
    if (now == strategy) continue;
    const auto costs = local_search_.strategy_costs(node);
    change += costs[strategy] - costs[now];
    earlier.emplace_back(node, now);
    local_search_.set(node, strategy);
  }
  if (earlier.empty()) return;
  const double over = penalty();
  if (change + over - overload_ <= 0) {
    cost_ += change;
    overload_ = over;
    sum_overloads();
    if (over == 0 && local_search_.fits()) best_.offer(local_search_.choice(), cost_);
    return;
  }
  for (auto back = earlier.rbegin(); back != earlier.rend(); ++back)
    local_search_.set(back->first, back->second);
}

}  // namespace alpa
