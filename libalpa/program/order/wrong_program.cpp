#include "libalpa/program/order/wrong_program.h"

#include <fmt/core.h>

#include "libalpa/base/error.h"

namespace alpa {

void refuse_program(MeshIndex mesh, const std::string& what) {
  throw Error(ErrorKind::run_time, fmt::format("the program of mesh {} is wrong: {}", mesh, what),
              "make the plan again with alpa-plan; if that does not help, report the plan file");
}

std::string instruction_words(const MeshProgram& mesh, const SegmentRun& run, std::size_t instruction) {
  const std::string of = run.micro_batch < 0 ? "" : fmt::format(" of micro-batch {}", run.micro_batch);
  return fmt::format("instruction {} of the {}{}", instruction, segment_text(mesh.segment_of(run)), of);
}

std::string buffer_words(const MeshProgram& mesh, BufferIndex buffer) {
  return fmt::format("buffer {} ({})", buffer, mesh.buffers[buffer].name);
}

}  // namespace alpa
