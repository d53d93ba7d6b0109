// What every device promises, on every backend that this build and machine have.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "libalpa/base/error.h"
#include "libalpa/device/device.h"

namespace alpa {
namespace {

using ::testing::HasSubstr;

struct Backend {
  std::string name;
  std::function<std::unique_ptr<Device>()> make;
  std::function<std::string()> reason_to_skip;  ///< "" where the backend can run here
};

void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.name; }

std::string no_reason() { return ""; }
std::string reason_without_gpu() {
  return visible_cuda_devices() > 0 ? ""
                                    : "no CUDA device is visible here, or this build has no CUDA backend";
}

class DeviceConformance : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (const std::string reason = GetParam().reason_to_skip(); !reason.empty()) GTEST_SKIP() << reason;
    device = GetParam().make();
    stream = device->make_stream();
  }

  std::unique_ptr<DeviceMemory> upload(const std::vector<float>& values) {
    const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(float));
    auto memory = device->allocate(bytes);
    stream->copy_to_device(memory->data(), values.data(), bytes);
    stream->synchronize();
    return memory;
  }

  std::vector<float> download(const DeviceMemory& memory) {
    std::vector<float> values(static_cast<std::size_t>(memory.bytes()) / sizeof(float));
    stream->copy_to_host(values.data(), memory.data(), memory.bytes());
    stream->synchronize();
    return values;
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
};

std::vector<float> counting_up(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

TEST_P(DeviceConformance, SaysWhatItIs) {
  const DeviceKind kind = device->kind();
  EXPECT_THAT(device->description(), HasSubstr(kind == DeviceKind::cuda       ? "GPU-"
                                               : kind == DeviceKind::emulated ? "emulated NVIDIA V100"
                                                                              : "CPU, 2 threads ("));
  EXPECT_EQ(device->kind() == DeviceKind::cuda, stream->native() != nullptr);
}

TEST_P(DeviceConformance, MemoryIsAlignedAndApart) {
  std::vector<std::unique_ptr<DeviceMemory>> memories;
  for (const std::int64_t bytes : {0, 1, 255, 4096, 3 << 20}) {
    memories.push_back(device->allocate(bytes));
    memories.push_back(device->allocate_staging(bytes));
    for (std::size_t i = memories.size() - 2; i < memories.size(); ++i) {
      EXPECT_EQ(memories[i]->bytes(), bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memories[i]->data()) % 256, 0u) << bytes << " bytes";
    }
  }
  for (const auto& a : memories)
    for (const auto& b : memories) {
      if (a == b || a->bytes() == 0 || b->bytes() == 0) continue;
      const auto* start_a = static_cast<std::byte*>(a->data());
      const auto* start_b = static_cast<std::byte*>(b->data());
      EXPECT_TRUE(start_a + a->bytes() <= start_b || start_b + b->bytes() <= start_a);
    }
}

TEST_P(DeviceConformance, CopiesArriveUnchanged) {
  const std::vector<float> values = counting_up(100003);
  const auto first = upload(values);
  const auto second = device->allocate(first->bytes());
  stream->copy_on_device(second->data(), first->data(), first->bytes());
  EXPECT_EQ(download(*second), values);
}

TEST_P(DeviceConformance, CopiesThroughStagingArriveUnchanged) {
  const std::vector<float> values = counting_up(5000);
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(float));
  const auto staging = device->allocate_staging(bytes);
  std::memcpy(staging->data(), values.data(), static_cast<std::size_t>(bytes));
  const auto memory = device->allocate(bytes);
  stream->copy_to_device(memory->data(), staging->data(), bytes);
  EXPECT_EQ(download(*memory), values);
}

TEST_P(DeviceConformance, NothingIsTouchedByWorkOnNoBytes) {
  const auto memory = upload({1, 2, 3});
  stream->fill_zero(memory->data(), 0);
  stream->copy_on_device(memory->data(), memory->data(), 0);
  stream->copy_to_device(memory->data(), nullptr, 0);
  EXPECT_EQ(download(*memory), (std::vector<float>{1, 2, 3}));
}

TEST_P(DeviceConformance, FillZeroFillsTheBytesAskedForAndNoMore) {
  const auto memory = upload({1, 2, 3, 4});
  stream->fill_zero(static_cast<float*>(memory->data()) + 1, 2 * sizeof(float));
  EXPECT_EQ(download(*memory), (std::vector<float>{1, 0, 0, 4}));
}

TEST_P(DeviceConformance, WorkOfOneStreamRunsInTheOrderQueued) {
  const auto source = upload(counting_up(1 << 18));
  const auto copy = device->allocate(source->bytes());
  stream->copy_on_device(copy->data(), source->data(), source->bytes());
  stream->fill_zero(source->data(), source->bytes());
  EXPECT_EQ(download(*copy), counting_up(1 << 18));
  EXPECT_EQ(download(*source), std::vector<float>(1 << 18, 0.0f));
}

TEST_P(DeviceConformance, AStreamStartsAfterTheEventItWaitsFor) {
  const auto other = device->make_stream();
  const auto source = upload(counting_up(1 << 18));
  const auto copy = device->allocate(source->bytes());
  stream->copy_on_device(copy->data(), source->data(), source->bytes());
  const auto copied = stream->record();
  other->wait(*copied);
  other->fill_zero(source->data(), source->bytes());
  other->synchronize();
  EXPECT_EQ(download(*copy), counting_up(1 << 18));
  EXPECT_EQ(download(*source), std::vector<float>(1 << 18, 0.0f));
}

TEST_P(DeviceConformance, TheHostSeesWhatWasDoneBeforeTheEventItWaitsFor) {
  const std::vector<float> values = counting_up(1 << 18);
  const auto memory = upload(values);
  const auto staging = device->allocate_staging(memory->bytes());
  stream->copy_to_host(staging->data(), memory->data(), memory->bytes());
  stream->record()->wait_on_host();
  const auto* seen = static_cast<const float*>(staging->data());
  EXPECT_TRUE(std::equal(values.begin(), values.end(), seen));
}

TEST_P(DeviceConformance, AskingForTooMuchSaysWhatWasAskedAndWhatIsFree) {
  EXPECT_GT(device->memory_bytes(), 0);
  try {
    device->allocate(std::int64_t{1} << 50);
    FAIL() << "a pebibyte was given";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::run_time);
    EXPECT_THAT(error.what(), HasSubstr("cannot allocate 1.00 PiB"));
    EXPECT_THAT(error.what(), HasSubstr("are free"));
  }
}

TEST(CudaDevice, IsRefusedWithAReasonWhereThereIsNone) {
  try {
    make_cuda_device(visible_cuda_devices());
    FAIL() << "there is one device more than are visible";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::allocation);
    EXPECT_THAT(error.what(), ::testing::AnyOf(HasSubstr("no CUDA backend"), HasSubstr("no CUDA device")));
    EXPECT_THAT(error.what(), HasSubstr("--device cpu"));
  }
}

const std::vector<Backend> backends{
    {"cpu", [] { return make_cpu_device(2); }, no_reason},
    {"checked_cpu", [] { return make_checked_cpu_device(2); }, no_reason},
    {"emulated", [] { return make_emulated_device("NVIDIA V100", std::int64_t{1} << 34); }, no_reason},
    {"cuda", [] { return make_cuda_device(0); }, reason_without_gpu},
};

INSTANTIATE_TEST_SUITE_P(Backends, DeviceConformance, ::testing::ValuesIn(backends),
                         [](const auto& backend) { return backend.param.name; });

}  // namespace
}  // namespace alpa
