#include "libalpa/h5/tensor_file.h"

#include <gmock/gmock.h>

#include <numeric>

#include "libalpa/base/error.h"
#include "tests/temporary_folder.h"

namespace alpa {
namespace {

class TensorFile : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "step-100.h5";
};

TEST_F(TensorFile, GivesBackRegionsOfEveryType) {
  std::vector<float> weight(600 * 2500);
  std::iota(weight.begin(), weight.end(), 0.0f);
  const std::vector<std::uint16_t> bias{0x3f80, 0xc020};  // 1, -2.5
  const std::int32_t count = -7;
  {
    TensorWriter file(path_, "alpa-checkpoint", "1.0");
    file.attribute("step", 100);
    file.attribute("loss_scale", 1024.0);
    file.attribute("model", "gpt");
    file.declare("decoder.0.weight", {DType::f32, {600, 2500}});
    file.declare("decoder.0.bias", {DType::bf16, {2}});
    file.declare("count", {DType::i32, {}});
    file.declare("none", {DType::f32, {0, 4}});
    file.write("decoder.0.weight",
               std::vector<TensorPart>{{{{0, 0}, {300, 2500}}, weight.data()},
                                       {{{300, 0}, {300, 2500}}, weight.data() + 300 * 2500}});
    file.write("decoder.0.bias", {{0}, {2}}, bias.data());
    file.write("count", {}, &count);
    file.write("none", {{0, 0}, {0, 4}}, nullptr);
    file.publish();
  }
  const TensorReader file(path_, "alpa-checkpoint", "1.0");
  EXPECT_EQ(file.int64_attribute("step"), 100);
  EXPECT_EQ(file.double_attribute("loss_scale"), 1024.0);
  EXPECT_EQ(file.text_attribute("model"), "gpt");
  const std::map<std::string, TensorType> expected{{"count", {DType::i32, {}}},
                                                   {"decoder.0.bias", {DType::bf16, {2}}},
                                                   {"decoder.0.weight", {DType::f32, {600, 2500}}},
                                                   {"none", {DType::f32, {0, 4}}}};
  EXPECT_EQ(file.tensors(), expected);

  std::vector<float> all(weight.size()), part(2 * 3);
  file.read_all("decoder.0.weight", all.data());
  EXPECT_EQ(all, weight);
  file.read("decoder.0.weight", {{299, 2497}, {2, 3}}, part.data());
  EXPECT_THAT(part, ::testing::ElementsAre(749997, 749998, 749999, 752497, 752498, 752499));
  std::vector<std::uint16_t> bias_read(2);
  file.read_all("decoder.0.bias", bias_read.data());
  EXPECT_EQ(bias_read, bias);
  std::int32_t count_read = 0;
  file.read_all("count", &count_read);
  EXPECT_EQ(count_read, -7);
  file.verify();
  EXPECT_THAT(run_command("h5dump -d /tensors/decoder.0.bias " + path_.string()).output,
              ::testing::HasSubstr("1, -2.5"));
}

}  // namespace
}  // namespace alpa
