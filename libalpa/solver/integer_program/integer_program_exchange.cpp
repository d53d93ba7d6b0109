#include "libalpa/solver/integer_program/integer_program_exchange.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace alpa {
namespace {

// Each list as its length and its elements.
class Writer {
 public:
  template <class Element>
  void put(const std::vector<Element>& values) {
    static_assert(std::is_trivially_copyable_v<Element>);
    const std::uint64_t count = values.size();
    text_.append(reinterpret_cast<const char*>(&count), sizeof count);
    text_.append(reinterpret_cast<const char*>(values.data()), count * sizeof(Element));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  template <class Element>
  void get(std::vector<Element>& values) {
    std::uint64_t count = 0;
    if (!whole_ || text_.size() - at_ < sizeof count) return fail();
    std::memcpy(&count, text_.data() + at_, sizeof count);
    at_ += sizeof count;
    if (count > (text_.size() - at_) / sizeof(Element)) return fail();
    values.resize(count);
    if (count > 0) std::memcpy(values.data(), text_.data() + at_, count * sizeof(Element));
    at_ += count * sizeof(Element);
  }
  bool complete() const { return whole_ && at_ == text_.size(); }

 private:
  void fail() { whole_ = false; }

  const std::string& text_;
  std::size_t at_ = 0;
  bool whole_ = true;
};

bool is_consistent(const IntegerProgram& program) {
  const auto entries = std::ssize(program.entry);
  return program.is_integer.size() == program.objective.size() &&
         program.row_upper.size() == program.row_lower.size() &&
         program.row_start.size() == program.row_lower.size() + 1 &&
         program.column.size() == program.entry.size() && program.row_start.front() == 0 &&
         program.row_start.back() == entries &&
         std::is_sorted(program.row_start.begin(), program.row_start.end()) &&
         std::all_of(program.column.begin(), program.column.end(),
                     [&](int column) { return column >= 0 && column < program.columns(); });
}

}  // namespace

std::string encode(const IntegerProgram& program, const IntegerProgramOptions& options) {
  Writer out;
  out.put(program.objective);
  out.put(program.is_integer);
  out.put(program.row_lower);
  out.put(program.row_upper);
  out.put(program.row_start);
  out.put(program.column);
  out.put(program.entry);
  out.put(std::vector<double>{options.absolute_gap, static_cast<double>(options.max_nodes),
                              options.time_limit_s, options.cutoff});
  out.put(options.start);
  return out.take();
}

std::optional<IntegerProgramTask> decode_task(const std::string& text) {
  Reader in(text);
  IntegerProgramTask task;
  std::vector<double> limits;
  in.get(task.program.objective);
  in.get(task.program.is_integer);
  in.get(task.program.row_lower);
  in.get(task.program.row_upper);
  in.get(task.program.row_start);
  in.get(task.program.column);
  in.get(task.program.entry);
  in.get(limits);
  in.get(task.options.start);
  if (!in.complete() || limits.size() != 4 || task.program.row_start.empty() || !is_consistent(task.program))
    return {};
  if (!task.options.start.empty() && task.options.start.size() != task.program.objective.size()) return {};
  task.options.absolute_gap = limits[0];
  task.options.max_nodes = static_cast<int>(limits[1]);
  task.options.time_limit_s = limits[2];
  task.options.cutoff = limits[3];
  return task;
}

std::string encode(const IntegerProgramResult& result) {
  Writer out;
  out.put(std::vector<double>{static_cast<double>(result.status), result.bound});
  out.put(result.solution);
  return out.take();
}

std::optional<IntegerProgramResult> decode_result(const std::string& text) {
  Reader in(text);
  std::vector<double> head;
  IntegerProgramResult result;
  in.get(head);
  in.get(result.solution);
  if (!in.complete() || head.size() != 2) return {};
  result.status = static_cast<IntegerProgramResult::Status>(static_cast<int>(head[0]));
  result.bound = head[1];
  return result;
}

}  // namespace alpa
