#include "libalpa/solver/integer_program/integer_program_exchange.h"

#include <gmock/gmock.h>

namespace alpa {
namespace {

IntegerProgram two_columns() {
  IntegerProgram program;
  program.add_entry(program.add_column(2, true), 1);
  program.add_entry(program.add_column(-3, false), 0.5);
  program.end_row(-1, 4);
  return program;
}

TEST(IntegerProgramExchange, GivesBackTheTask) {
  const auto task = decode_task(
      encode(two_columns(), {.absolute_gap = 0.25, .max_nodes = 7, .time_limit_s = 3, .start = {1, 0}}));
  ASSERT_TRUE(task);
  EXPECT_EQ(task->program.objective, (std::vector<double>{2, -3}));
  EXPECT_EQ(task->program.is_integer, (std::vector<char>{1, 0}));
  EXPECT_EQ(task->program.column, (std::vector<int>{0, 1}));
  EXPECT_EQ(task->program.row_upper, (std::vector<double>{4}));
  EXPECT_EQ(task->options.absolute_gap, 0.25);
  EXPECT_EQ(task->options.max_nodes, 7);
  EXPECT_EQ(task->options.time_limit_s, 3);
  EXPECT_EQ(task->options.start, (std::vector<double>{1, 0}));
}

TEST(IntegerProgramExchange, GivesBackTheResult) {
  const auto result = decode_result(encode({IntegerProgramResult::Status::stopped, {0, 1}, -2.5}));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, IntegerProgramResult::Status::stopped);
  EXPECT_EQ(result->solution, (std::vector<double>{0, 1}));
  EXPECT_EQ(result->bound, -2.5);
}

TEST(IntegerProgramExchange, RefusesEveryTruncationAndEveryStrayByte) {
  const std::string task = encode(two_columns(), {}),
                    result = encode({IntegerProgramResult::Status::optimal, {1}, 0});
  for (std::size_t size = 0; size < task.size(); ++size)
    EXPECT_FALSE(decode_task(task.substr(0, size))) << size;
  for (std::size_t size = 0; size < result.size(); ++size)
    EXPECT_FALSE(decode_result(result.substr(0, size))) << size;
  EXPECT_FALSE(decode_task(task + 'x'));
  EXPECT_FALSE(decode_task(std::string(64, '\xff')));
}

TEST(IntegerProgramExchange, RefusesColumnsThatAreNotThere) {
  auto program = two_columns();
  program.column[1] = 2;
  EXPECT_FALSE(decode_task(encode(program, {})));
}

}  // namespace
}  // namespace alpa
