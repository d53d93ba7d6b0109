#include "libalpa/trainer/training_data.h"

#include <gmock/gmock.h>

#include <fstream>

#include "libalpa/base/error.h"
#include "libalpa/dataset/convert.h"
#include "libalpa/h5/file.h"
#include "libalpa/model/model.h"
#include "tests/h5/temporary_folder.h"
#include "tests/trainer/own_samples.h"

namespace alpa {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// The tiny LSTM: classes for each of up to 8 steps of 4 features.
class SequencesWithLabels : public ::testing::Test {
 protected:
  /// Labels and lengths of the one batch of samples that a file has, with one of each replaced.
  std::vector<std::int32_t> labels_of(std::int32_t label, std::int32_t length) {
    H5Writer file(path_, "somebody-else", "1.0");
    std::vector<std::int32_t> labels(8 * 8, 3), lengths(8, 5);
    labels[20] = label;
    lengths[2] = length;
    file.array("/frames", std::vector<double>(8 * 8 * 4, 0.5), {8, 8, 4}, "1");
    file.array("/labels", labels, {8, 8}, "1");
    file.column("/lengths", lengths, "1");
    file.publish();
    const TrainingData data = open_training_data(path_, training_step_graph(model_, 8), model_.training, 0);
    std::vector<float> frames(8 * 8 * 4);
    const std::span<std::byte> into[] = {std::as_writable_bytes(std::span(frames)),
                                         std::as_writable_bytes(std::span(labels)),
                                         std::as_writable_bytes(std::span(lengths))};
    data.reader->fill(Split::training, 0, whole_batch(8, {8 * 4 * 4, 8 * 4, 4}), into);
    return labels;
  }

  const std::filesystem::path source_ = ALPA_SOURCE_DIR;
  const ModelDefinition model_ =
      read_model(source_ / "tests" / "data" / "tiny_lstm.toml", {source_ / "share" / "blocks"});
  TemporaryFolder folder_;
  const std::string path_ = (folder_.path() / "sequences.h5").string();
};

TEST_F(SequencesWithLabels, MayLackSomeLabels) { EXPECT_THAT(labels_of(-1, 5), Contains(-1)); }

TEST_F(SequencesWithLabels, LackNoLengths) {
  EXPECT_THAT([&] { labels_of(3, -1); },
              ThrowsMessage<Error>(HasSubstr("/lengths, row 2: -1, but the model takes 0 to 8")));
}

TEST_F(SequencesWithLabels, HaveOnlyKnownLabels) {
  EXPECT_THAT([&] { labels_of(8, 5); },
              ThrowsMessage<Error>(HasSubstr("/labels, row 2: 8, but the model takes -1 to 7")));
}

/// Tokens that a text was converted to, whose documents end with 7, for a model with other ideas of that.
class TokensOfDocuments : public ::testing::Test {
 protected:
  void open_for(std::int64_t document_end, const std::string& data) const {
    ModelDefinition model =
        read_model(source_ / "tests" / "data" / "tiny_llama.toml", {source_ / "share" / "blocks"});
    model.training.document_end = document_end;
    open_training_data(data, training_step_graph(model, 8), model.training, 0);
  }

  std::string converted() const {
    const std::filesystem::path text = folder_.path() / "text.txt", out = folder_.path() / "text.h5";
    std::ofstream(text) << std::string(4000, '\1');
    ConvertSettings settings;
    settings.sources = {text};
    settings.out = out;
    settings.end_of_text = "7";
    Log log("test", LogLevel::off);
    convert(settings, {}, log);
    return out.string();
  }

  const std::filesystem::path source_ = ALPA_SOURCE_DIR;
  TemporaryFolder folder_;
};

TEST_F(TokensOfDocuments, EndAsTheModelIsTrainedWith) {
  const std::string data = converted(), mix = (folder_.path() / "mix.toml").string();
  std::ofstream(mix) << "[[source]]\ndata = \"text.h5\"\nweight = 1\n";
  for (const std::string& each : {data, mix}) {
    open_for(7, each);
    open_for(-1, each);
    EXPECT_THAT([&] { open_for(8, each); },
                ThrowsMessage<Error>(HasSubstr("[training] document_end is 8, but documents end with 7 in")))
        << each;
  }
}

TEST_F(TokensOfDocuments, EndWithAnIdOfTheVocabulary) {
  open_for(63, "synthetic:64");
  EXPECT_THAT([&] { open_for(64, "synthetic:64"); },
              ThrowsMessage<Error>(
                  HasSubstr("[training] document_end is 64, but the ids that the model takes are 0 to 63")));
}

}  // namespace
}  // namespace alpa
