#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "libalpa/base/error.h"
#include "libalpa/model/model.h"
#include "libalpa/program/lower/lower.h"
#include "tests/support/small_plans.h"
#include "tests/support/source_folder.h"

namespace alpa {
namespace {

using namespace testing_models;

/// What is alive at once in a segment where instructions follow each other.
std::int64_t alive_at_once(const MeshProgram& mesh, const Segment& segment) {
  std::map<BufferIndex, std::pair<int, int>> lives;
  for (int i = 0; i < std::ssize(segment.instructions); ++i)
    for (const BufferIndex touched : buffers_touched(segment.instructions[static_cast<std::size_t>(i)])) {
      const BufferIndex b = mesh.whole(touched);
      if (mesh.buffers[b].residence == Residence::segment && mesh.buffers[b].space == MemorySpace::device)
        lives.try_emplace(b, i, i).first->second.second = i;
    }
  std::map<int, std::int64_t> change;
  for (const auto& [b, life] : lives) {
    change[life.first] += mesh.buffers[b].bytes;
    change[life.second + 1] -= mesh.buffers[b].bytes;
  }
  std::int64_t now = 0, most = 0;
  for (const auto& [instruction, bytes] : change) most = std::max(most, now += bytes);
  return most;
}

/// Less memory than that no layout has: what lasts from segment to segment, and the most that is alive in
/// one.
std::int64_t least_arena(const MeshProgram& mesh) {
  std::int64_t lasting = 0, least = 0;
  for (const Buffer& buffer : mesh.buffers)
    if (buffer.view_of < 0 && buffer.space == MemorySpace::device && buffer.residence != Residence::segment)
      lasting += buffer.bytes * buffer.slots;
  for (const Segment& segment : mesh.segments) least = std::max(least, alive_at_once(mesh, segment));
  return lasting + least;
}

/// Of the meshes of a plan by that method, on four devices.
double most_over_least(const std::filesystem::path& file, const std::string& method) {
  const ModelDefinition model = read_model(file, {source_folder() / "share/blocks"});
  const PlanningModel planning{file.stem(), "", model.training.batch,
                               [&](std::int64_t samples) { return training_step_graph(model, samples); },
                               model.training.group_samples};
  Cluster cluster = small_cluster(4);
  cluster.memory_bytes = std::int64_t{1} << 44;  // which all have
  cluster.f16_flops_per_s = cluster.bf16_flops_per_s;
  PlannerOptions options;
  options.method = method;
  options.micro_batches = 1;
  options.effort = PlannerEffort::quick;
  const Plan plan = plan_quietly(planning, cluster, options);
  const Program program = lower(planning.graph(plan.micro_batch_samples), plan);
  double most = 0;
  for (const MeshProgram& mesh : program.meshes)
    most = std::max(most, static_cast<double>(mesh.memory.total) / static_cast<double>(least_arena(mesh)));
  return most;
}

TEST(Arena, IsWithinATwentiethOfTheLeastForEveryModel) {
  int arenas = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_folder() / "configs/models")) {
    if (entry.path().extension() != ".toml") continue;
    for (const char* method : {"zero-3", "tensor"}) try {
        EXPECT_LE(most_over_least(entry.path(), method), 1.05) << entry.path() << ", " << method;
        ++arenas;
      } catch (const Error& error) {  // some batches cannot be shared out among four
        EXPECT_EQ(error.kind(), ErrorKind::infeasible)
            << entry.path() << ", " << method << ": " << error.what();
      }
  }
  EXPECT_GT(arenas, 100);
}

}  // namespace
}  // namespace alpa
