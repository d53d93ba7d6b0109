#include <gmock/gmock.h>
#include <mpi.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "libalpa/comm/mpi_communicator.h"
#include "libalpa/planner/gradient_owners.h"
#include "libalpa/trainer/train.h"
#include "tests/comm/heard_communicator.h"
#include "tests/h5/shared_folder.h"
#include "tests/mpi_main.h"
#include "tests/trainer/heap_watch.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

// What is taken between the global sums of these two steps counts. The steps before make what is kept:
// oneDNN's generated code, OpenMP's threads, MPI's connections and stores of requests. After the last comes a
// checkpoint.
constexpr int kFirst = 5, kLast = 12;

MPI_Comm duplicate(MPI_Comm of) {
  MPI_Comm copy;
  MPI_Comm_dup(of, &copy);
  return copy;
}

/// Once a step.
class HeardSteps final : public HeardCommunicator {
 public:
  /// `sends`: ranks add nothing up together, and send each other a message a step.
  HeardSteps(std::unique_ptr<Communicator> inner, bool sends)
      : HeardCommunicator(std::move(inner)), sends_(sends) {}

  Progress advance(Stream& s) override {
    const Progress progress = HeardCommunicator::advance(s);
    if (progress == Progress::done) count();  // the sum of loss and gradient norm, once a step
    return progress;
  }
  std::unique_ptr<Communicator> duplicate() override {
    std::unique_ptr<Communicator> copy = HeardCommunicator::duplicate();
    if (!sends_) return copy;
    return std::make_unique<HeardMessages>(std::move(copy), *this);
  }
  int steps() const { return steps_; }

 private:
  class HeardMessages final : public HeardCommunicator {
   public:
    HeardMessages(std::unique_ptr<Communicator> inner, HeardSteps& steps)
        : HeardCommunicator(std::move(inner)), steps_(steps) {}

    std::int64_t send(Stream& s, const void* data, std::int64_t bytes, int to) override {
      if (first_ < 0) first_ = to;
      if (to == first_) steps_.count();
      return HeardCommunicator::send(s, data, bytes, to);
    }

   private:
    HeardSteps& steps_;
    int first_ = -1;  ///< rank that it has sent to
  };

  void count() {
    ++steps_;
    if (steps_ == kFirst) heap_watch::start();
    if (steps_ == kLast) heap_watch::stop();
  }

  bool sends_;
  int steps_ = 0;
};

/// oneDNN 2.6 cannot be given this memory: dnnl_sgemm takes what it packs operands into, and executing a
/// primitive, on a scratchpad of ours too, takes a table of its arguments. Making a primitive is another
/// thing.
bool takes_memory_in_each_call(const heap_watch::Source& source) {
  return source.file.starts_with("libdnnl.") && source.stack.find("_create") == std::string::npos;
}

/// UCX keeps its requests in stores that grow to the most messages ever in flight at once, which depends on
/// how far the slowest rank lags. A store that grows in every step would lose them.
bool grows_a_store_of_requests(const heap_watch::Source& source) {
  return source.file.starts_with("libucs.") && source.stack.find("ucs_mpool_grow") != std::string::npos &&
         source.allocations < kLast - kFirst;
}

TEST(HeapWatch, CountsAllocationsByWhoAsked) {
  heap_watch::start();
  std::string(100, 'x').append(1, 'x');
  std::vector<int>(100).push_back(1);
  heap_watch::stop();
  ASSERT_THAT(heap_watch::sources(), testing::Not(testing::IsEmpty()));
  EXPECT_THAT(heap_watch::sources(),
              testing::Each(testing::Field(&heap_watch::Source::file, "test_step_allocations_mpi")));
}

class Step : public testing::TestWithParam<TinyCase> {
 protected:
  using Change = std::function<void(TinyTraining&)>;  ///< of the plan

  /// Of the case's devices and servers.
  static int ranks_of(const TinyCase& c) { return c.devices + c.servers; }

  /// Collective over `ranks`, one for each of these.
  static void train_and_count(const TinyCase& c, Overlap overlap, const Change& change, MPI_Comm ranks,
                              const std::filesystem::path& run_dir) {
    HeardSteps world(make_mpi_communicator(duplicate(ranks), nullptr), c.staleness >= 0);
    const auto control = make_mpi_communicator(duplicate(ranks), nullptr);
    const auto device = make_cpu_device(c.devices == 1 ? 2 : 1);
    TinyTraining tiny(c);
    tiny.set_overlap(overlap);
    change(tiny);
    Log log("test", LogLevel::off);
    TrainSettings settings;
    settings.data = "synthetic:60";
    settings.run_dir = run_dir;
    settings.steps = kLast + 1;
    settings.checkpoint_every = 0;
    settings.progress_s = 1e9;
    if (c.servers > 0) settings.node = world.rank();  // as the plan has them
    StopRequest stop;
    EXPECT_EQ(train(tiny.plan(), tiny.graph(), tiny.options(), settings,
                    {*device, world, *device, *control, *control, nullptr, ranks_of(c)}, stop, {}, log),
              0);
    EXPECT_EQ(world.steps(), settings.steps);
  }

  /// Collective.
  static void expect_none(
      const TinyCase& c, Overlap overlap, const Change& change = [](TinyTraining&) {}) {
    const SharedFolder folder;
    const auto everyone = make_mpi_communicator(duplicate(MPI_COMM_WORLD), nullptr);
    MPI_Comm ranks;
    const bool takes_part = mpi_session().rank() < ranks_of(c);
    MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, 0, &ranks);
    if (takes_part) {
      train_and_count(c, overlap, change, ranks, folder.path() / "run");
      for (const heap_watch::Source& source : heap_watch::sources())
        if (!takes_memory_in_each_call(source) && !grows_a_store_of_requests(source))
          ADD_FAILURE() << source.allocations << " allocations in " << kLast - kFirst << " steps by "
                        << source.file << " in\n"
                        << source.stack;
      MPI_Comm_free(&ranks);
    }
    everyone->barrier();  // which leaves the cores to those that train
  }
};

TEST_P(Step, TakesNothingFromTheHeap) {
  const TinyCase& c = GetParam();
  for (const Overlap overlap : {Overlap::none, Overlap::all})
    if (overlap == Overlap::none || c.devices > 1) expect_none(c, overlap);
}

/// With activations on the host.
class OffloadingStep : public Step {};

TEST_P(OffloadingStep, TakesNothingFromTheHeap) {
  for (const Overlap overlap : {Overlap::none, Overlap::all})
    expect_none(GetParam(), overlap, [](TinyTraining& tiny) { tiny.set_activations_on_host(); });
}

/// Whose devices update rows of their own.
class OwningStep : public Step {};

TEST_P(OwningStep, TakesNothingFromTheHeap) {
  for (const Overlap overlap : {Overlap::none, Overlap::all})
    expect_none(GetParam(), overlap, [](TinyTraining& tiny) {
      tiny.set_sync(with_owners(tiny.plan(), GraphUses(tiny.graph()), OwnerRule::uneven));
      ASSERT_FALSE(tiny.plan().sync.empty());
    });
}

TinyCase in_next_forward(TinyCase c) {
  c.updates = UpdateOrder::next_forward;
  return c;
}

/// Each device a node, with so many further ones.
TinyCase serving(TinyCase c, int servers) {
  c.nodes = c.devices;
  c.servers = servers;
  return c;
}

/// With states there, of which parameters are a step old at most.
TinyCase stale(TinyCase c, int servers) {
  c = serving(std::move(c), servers);
  c.staleness = 1;
  return c;
}

/// Of rows of ids, as many as a step happens to have.
TinyCase sparse(TinyCase c) {
  c.sparse = c.wire_bound = true;
  return c;
}

INSTANTIATE_TEST_SUITE_P(
    Plans, Step,
    testing::Values(TinyCase{"gpt", "serial", 1, 4}, TinyCase{"llama", "serial", 1, 2},
                    TinyCase{"bert", "serial", 1, 1}, TinyCase{"wide", "serial", 1, 1},
                    TinyCase{"wide", "serial", 1, 1, "1f1b", Rematerialize::never, Precision::bf16},
                    TinyCase{"gpt", "serial", 1, 2, "1f1b", Rematerialize::never, Precision::bf16},
                    TinyCase{"gpt", "data-parallel", 2, 1}, TinyCase{"gpt", "zero-3", 2, 2},
                    TinyCase{"llama", "tensor", 2, 1}, TinyCase{"gpt", "sequence", 2, 1},
                    TinyCase{"gpt", "inter-only", 2, 4}, TinyCase{"gpt", "mixed", 4, 4},
                    in_next_forward({"unclipped", "zero-1", 2, 1}),
                    in_next_forward({"llama", "inter-only", 2, 4}), TinyCase{"bf16_wire", "zero-1", 2, 1},
                    sparse({"llama", "parallax", 2, 1}), serving({"llama", "data-parallel", 2, 1}, 2),
                    stale({"gpt", "data-parallel", 2, 1}, 2),
                    TinyCase{"gpt", "mixed", 4, 4, "gpipe", Rematerialize::never, Precision::bf16}),
    [](const auto& plan) {
      return plan.param.name() + (plan.param.precision == Precision::bf16 ? "_bf16" : "");
    });

INSTANTIATE_TEST_SUITE_P(Plans, OwningStep, testing::Values(TinyCase{"gpt", "data-parallel", 4, 2}),
                         [](const auto& plan) { return plan.param.name(); });

INSTANTIATE_TEST_SUITE_P(Plans, OffloadingStep,
                         testing::Values(TinyCase{"gpt", "data-parallel", 2, 2},
                                         TinyCase{"gpt", "mixed", 4, 4}),
                         [](const auto& plan) { return plan.param.name(); });

}  // namespace
}  // namespace alpa
