#include "libalpa/program/program.h"

#include <map>

#include "libalpa/base/match.h"

namespace alpa {
namespace {

std::vector<int> present(std::initializer_list<int> buffers) {
  std::vector<int> list;
  for (const int b : buffers)
    if (b >= 0) list.push_back(b);
  return list;
}

}  // namespace

const char* segment_name(SegmentKind kind) {
  switch (kind) {
    case SegmentKind::forward:
      return "forward";
    case SegmentKind::backward:
      return "backward";
    case SegmentKind::update:
      return "update";
  }
  return "";
}

std::vector<int> buffers_read(const Instruction& instruction) {
  return std::visit(Match{
                        [](const Load&) { return std::vector<int>{}; },
                        [](const Compute& i) {
                          std::vector<int> read = i.operands;
                          if (i.accumulate == Accumulate::add)
                            read.insert(read.end(), i.results.begin(), i.results.end());
                          return read;
                        },
                        [](const Convert& i) { return present({i.from}); },
                        [](const Shift& i) { return i.from; },
                        [](const Send& i) { return present({i.from}); },
                        [](const Receive&) { return std::vector<int>{}; },
                        [](const GlobalSum& i) { return i.scalars; },
                        [](const Zero&) { return std::vector<int>{}; },
                    },
                    instruction);
}

std::vector<int> buffers_written(const Instruction& instruction) {
  return std::visit(Match{
                        [](const Load& i) { return present({i.to}); },
                        [](const Compute& i) {
                          std::vector<int> written = i.results;
                          if (i.workspace >= 0) written.push_back(i.workspace);
                          return written;
                        },
                        [](const Convert& i) {
                          return present({i.to, i.packed, i.unpacked});
                        },
                        [](const Shift& i) { return i.to; },
                        [](const Send& i) { return present({i.packed}); },
                        [](const Receive& i) {
                          return present({i.to, i.packed});
                        },
                        [](const GlobalSum& i) {
                          std::vector<int> written = i.scalars;
                          if (i.packed >= 0) written.push_back(i.packed);
                          return written;
                        },
                        [](const Zero& i) { return present({i.to}); },
                    },
                    instruction);
}

std::vector<std::pair<std::string, int>> collective_counts(const StageProgram& stage) {
  std::map<std::string, int> counts;
  for (const ScheduledSegment& run : stage.schedule)
    for (const Instruction& instruction : stage.segment(run.segment)) {
      if (std::holds_alternative<Shift>(instruction)) ++counts["shift"];
      if (const auto* convert = std::get_if<Convert>(&instruction))
        if (convert->step.kind != ConversionKind::slice) ++counts[conversion_name(convert->step.kind)];
    }
  return {counts.begin(), counts.end()};
}

}  // namespace alpa
