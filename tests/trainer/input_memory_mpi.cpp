// What a rank of a run holds beside its arena, as the system counts it.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <mpi.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "libalpa/comm/mpi_communicator.h"
#include "libalpa/h5/rows_writer.h"
#include "libalpa/model/model.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/step_samples.h"
#include "libalpa/trainer/read_ahead.h"
#include "libalpa/trainer/run_needs.h"
#include "libalpa/trainer/train.h"
#include "libalpa/trainer/training_data.h"
#include "tests/h5/shared_folder.h"
#include "tests/mpi_main.h"
#include "tests/support/small_plans.h"
#include "tests/support/source_folder.h"

namespace alpa {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

// Images of 64 x 64 x 3 numbers: 48 KiB each, 72 MiB a batch.
constexpr std::int64_t kBatch = 1536, kSide = 64, kImageBytes = kSide * kSide * 3 * 4;

const std::string kModel = fmt::format(R"(name = "images"
base = "{}/configs/models/image-mlp.toml"
[dimensions]
height = {}
width = {}
channels = 3
model = 32
[training]
batch = {}
)",
                                       source_folder().string(), kSide, kSide, kBatch);

// The first layer on two ranks with half of the samples each, which have the images; the next on one rank,
// which has no input; the last two on a rank that has the labels.
const std::string kPin = R"(micro_batches = 16
schedule = "1f1b"
[[stage]]
layers = 1
mesh = [2]
axes = ["data"]
[[stage]]
layers = 1
[[stage]]
layers = 2
)";

/// A line of /proc/self/status, in bytes.
std::int64_t memory_of_process(const std::string& line) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == line + ":") {
      std::int64_t kib = 0;
      status >> kib;
      return kib << 10;
    }
  throw std::runtime_error(line + " is not in /proc/self/status");
}

/// Two batches of images of bytes, and their labels.
void write_images(const std::filesystem::path& path) {
  H5RowsWriter file(path, "alpa-data", "1.0");
  const int images = file.declare("/images", RowsType::u8, {2 * kBatch, kSide, kSide, 3}),
            labels = file.declare("/labels", RowsType::i32, {2 * kBatch});
  for (std::int32_t row = 0; row < 2 * kBatch; ++row) {
    const std::vector<std::uint8_t> pixels(kImageBytes / 4, static_cast<std::uint8_t>(row));
    const std::int32_t label = row % 10;
    file.append(images, 1, pixels.data());
    file.append(labels, 1, &label);
  }
  file.publish();
}

std::unique_ptr<Communicator> all_ranks() {
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  return make_mpi_communicator(copy, nullptr);
}

// A rank takes 1536 / 2 images a step, each 48 KiB, in two buffers: 72 MiB; one without images next to none.
// That every rank had all of them twice would be 144 MiB. What is allowed beside is for what grows in any run
// (code that oneDNN makes, MPI's messages, the first checkpoint), and less than a quarter of that.
TEST(InputMemory, IsWithinTheBudgetOfEachRank) {
  const SharedFolder folder;
  const std::string data = (folder.path() / "images.h5").string();
  if (mpi_session().rank() == 0) write_images(data);
  const auto world = all_ranks(), control = all_ranks();
  world->barrier();
  const ModelDefinition model = parse_model(kModel, "images.toml", {source_folder() / "share/blocks"});
  const auto graph_of = [&](std::int64_t samples) { return training_step_graph(model, samples); };
  PlannerOptions options;
  options.pin = parse_pin(kPin, "pin");
  const Plan plan = testing_models::plan_quietly({"images", "", kBatch, graph_of},
                                                 testing_models::small_cluster(4), options);
  const Graph graph = graph_of(plan.micro_batch_samples);
  const Program training = lower(graph, plan), evaluation = lower(graph, plan, Purpose::evaluate);
  const Program* const programs[] = {&training, &evaluation};
  const StepSamples samples =
      step_samples_of_devices(graph, programs)[static_cast<std::size_t>(world->rank())];
  const std::vector<std::int64_t> images_of_ranks{kBatch / 2, kBatch / 2, 0, 0},
      labels_of_ranks{0, 0, 0, kBatch};
  EXPECT_EQ(samples[0].count(), images_of_ranks[static_cast<std::size_t>(world->rank())]);
  EXPECT_EQ(samples[1].count(), labels_of_ranks[static_cast<std::size_t>(world->rank())]);

  std::int64_t budget = 0, arena = 0;
  {
    const TrainingData opened = open_training_data(data, graph, model.training, SampleOrder::usual_held_out);
    EXPECT_TRUE(opened.reader->can_read_ahead());
    EXPECT_LT(opened.reader->held_bytes(), 2 * kMiB);
    budget = ReadAhead::bytes(samples, *opened.reader);
  }
  EXPECT_LT(budget, 2 * samples[0].count() * kImageBytes + 3 * kMiB);
  for (const Program* program : programs)
    for (const MeshProgram& mesh : program->meshes)
      if (world->rank() >= mesh.mesh.first_device &&
          world->rank() < mesh.mesh.first_device + device_count(mesh.mesh.shape))
        arena = std::max(arena, mesh.memory.total);

  const auto device = make_cpu_device(1);
  Log log("test", LogLevel::off);
  TrainSettings settings;
  settings.data = data;
  settings.run_dir = folder.path() / "run";
  settings.steps = 4;
  settings.evaluate_every = 2;
  StopRequest stop;
  const std::int64_t before = memory_of_process("VmRSS");
  EXPECT_EQ(train(plan, graph, model.training, settings,
                  {*device, *world, *device, *control, *control, nullptr, world->size()}, stop, {}, log),
            0);
  const std::int64_t grown = memory_of_process("VmHWM") - before;
  const std::int64_t beside = 32 * kMiB;
  fmt::print("rank {}: {:.1f} MiB more than before, arena {:.1f}, budget of samples {:.1f}\n", world->rank(),
             static_cast<double>(grown) / kMiB, static_cast<double>(arena) / kMiB,
             static_cast<double>(budget) / kMiB);
  // A checkpoint: its copy, and no more in buffers than that.
  const std::int64_t of_checkpoint = 2 * process_memory(training, graph, arena, budget).snapshot;
  EXPECT_LT(of_checkpoint, 8 * kMiB);  // chunks are whole
  EXPECT_LT(grown - arena, budget + of_checkpoint + beside);
}

}  // namespace
}  // namespace alpa
