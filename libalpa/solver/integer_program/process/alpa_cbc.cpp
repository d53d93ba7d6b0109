// The process that runs CBC: an integer program on standard input, its solution on standard output
// (integer_program_exchange.h). A process of its own because CBC neither keeps to its time limit, nor keeps
// quiet, nor may run in two threads at once.
#include <Cbc_C_Interface.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "libalpa/solver/integer_program/integer_program_exchange.h"

namespace alpa {
namespace {

struct DeleteModel {
  void operator()(Cbc_Model* model) const { Cbc_deleteModel(model); }
};
using Model = std::unique_ptr<Cbc_Model, DeleteModel>;

// CBC takes a matrix by columns.
void load(Cbc_Model* model, const IntegerProgram& program) {
  const int columns = program.columns();
  std::vector<int> start(columns + 1, 0), row(program.entry.size());
  std::vector<double> value(program.entry.size());
  for (int c : program.column) ++start[c + 1];
  for (int c = 0; c < columns; ++c) start[c + 1] += start[c];
  std::vector<int> next(start.begin(), start.end() - 1);
  for (int r = 0; r < program.rows(); ++r) {
    for (int k = program.row_start[r]; k < program.row_start[r + 1]; ++k) {
      const int at = next[program.column[k]]++;
      row[at] = r;
      value[at] = program.entry[k];
    }
  }
  const std::vector<double> lower(columns, 0), upper(columns, 1);
  Cbc_loadProblem(model, columns, program.rows(), start.data(), row.data(), value.data(), lower.data(),
                  upper.data(), program.objective.data(), program.row_lower.data(), program.row_upper.data());
  for (int c = 0; c < columns; ++c) {
    if (program.is_integer[c]) Cbc_setInteger(model, c);
  }
}

void set_start(Cbc_Model* model, const IntegerProgram& program, const std::vector<double>& start) {
  std::vector<int> index;
  std::vector<double> value;
  for (int c = 0; c < program.columns(); ++c) {
    if (program.is_integer[c]) index.push_back(c), value.push_back(start[c]);
  }
  Cbc_setMIPStartI(model, static_cast<int>(index.size()), index.data(), value.data());
}

IntegerProgramResult solve(const IntegerProgram& program, const IntegerProgramOptions& options) {
  const Model model(Cbc_newModel());
  load(model.get(), program);
  Cbc_setLogLevel(model.get(), 0);
  Cbc_setParameter(model.get(), "sec", fmt::format("{}", options.time_limit_s).c_str());
  Cbc_setParameter(model.get(), "maxN", fmt::format("{}", options.max_nodes).c_str());
  Cbc_setParameter(model.get(), "ratioGap", "0");
  Cbc_setParameter(model.get(), "allow", fmt::format("{}", options.absolute_gap).c_str());
  if (options.cutoff < infinity) Cbc_setCutoff(model.get(), options.cutoff);
  if (!options.start.empty()) set_start(model.get(), program, options.start);
  Cbc_solve(model.get());

  using Status = IntegerProgramResult::Status;
  IntegerProgramResult result;
  result.status = Status::stopped;
  if (Cbc_isProvenInfeasible(model.get())) result.status = Status::infeasible;
  if (Cbc_isProvenOptimal(model.get())) result.status = Status::optimal;
  result.bound = Cbc_getBestPossibleObjValue(model.get());
  if (const double* best = Cbc_bestSolution(model.get());
      best != nullptr && result.status != Status::infeasible) {
    result.solution.assign(best, best + program.columns());
  }
  return result;
}

}  // namespace
}  // namespace alpa

int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // does not outlive the thread that waits for it
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  const auto task = alpa::decode_task(input);
  if (!task) {
    std::fputs(
        "alpa-cbc: solves an integer program for alpa-plan, which starts it; not meant to be run by hand\n",
        stderr);
    return 2;
  }
  // CBC's chatter goes where standard error goes; standard output is for the answer.
  std::FILE* answer = fdopen(dup(STDOUT_FILENO), "wb");
  if (answer == nullptr || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return EXIT_FAILURE;
  const std::string result = alpa::encode(alpa::solve(task->program, task->options));
  const bool sent = std::fwrite(result.data(), 1, result.size(), answer) == result.size();
  return std::fclose(answer) == 0 && sent ? EXIT_SUCCESS : EXIT_FAILURE;
}
