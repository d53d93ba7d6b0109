// Data through the commands: into HDF5, looked at, trained from.
#include <gmock/gmock.h>

#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Conversions : public Workplace {
 protected:
  void train_on(const std::string& data, const std::string& plan, int ranks,
                const std::string& run_dir) const {
    const CommandResult result =
        run("alpa-train " + plan + ".h5 --data " + data + " --run-dir " + run_dir + " --steps 20", ranks);
    ASSERT_EQ(result.status, 0) << result.output;
  }
};

TEST_F(Conversions, OfNumbersGivesWhatAModelOfImagesLearnsFrom) {
  // Images of 4 x 4 x 2 whose brightest pixels are those of their class.
  std::string text;
  for (int i = 0; i < 256; ++i) {
    for (int pixel = 0; pixel < 32; ++pixel)
      text += pixel / 4 == i % 8 ? "16," : std::to_string((i * pixel) % 5) + ",";
    text += std::to_string(i % 8) + "\n";
  }
  write("images.csv", text);
  const CommandResult converted =
      run("alpa-train convert images.csv --shape 4x4x2 --divide 16 --hold-out 0.125 --out images.h5");
  ASSERT_EQ(converted.status, 0) << converted.output;
  EXPECT_THAT(converted.output,
              HasSubstr("256 samples of 4x4x2, 8 classes; 224 in 'images.h5', 32 in 'images-held-out.h5'"));
  EXPECT_THAT(run("h5ls images.h5").output,
              AllOf(HasSubstr("images                   Dataset {224, 4, 4, 2}"),
                    HasSubstr("labels                   Dataset {224}")));
  EXPECT_THAT(run("h5ls images-held-out.h5").output,
              HasSubstr("images                   Dataset {32, 4, 4, 2}"));

  make_plan("data", "--method data-parallel --devices 2", ALPA_SOURCE_DIR "/tests/data/tiny_image_mlp.toml");
  train_on("images.h5", "data", 2, "run");
  const std::vector<double> losses = numbers("run", "loss");
  ASSERT_EQ(losses.size(), 20u);
  EXPECT_LT(losses.back(), 0.8 * losses.front());
}

TEST_F(Conversions, HoldsOutRowsThatEvaluationsTake) {
  std::string text;
  for (int i = 0; i < 256; ++i) {
    for (int pixel = 0; pixel < 32; ++pixel) text += std::to_string((7 * i + i * pixel) % 5) + ",";
    text += std::to_string(i % 8) + "\n";
  }
  write("images.csv", text);
  // 5 %, or 13 rows: what training by itself holds out of the whole.
  const std::string command = "alpa-train convert images.csv --shape 4x4x2 --divide 4 --order kept ";
  ASSERT_EQ(run(command + "--out whole.h5").status, 0);
  ASSERT_EQ(run(command + "--hold-out 0.05 --out part.h5").status, 0);
  make_plan("serial", "--method serial", ALPA_SOURCE_DIR "/tests/data/tiny_image_mlp.toml");
  train_on("whole.h5 --evaluate-every 1", "serial", 1, "whole");
  train_on("part.h5 --evaluation-data part-held-out.h5 --evaluate-every 1", "serial", 1, "part");
  EXPECT_EQ(numbers("part", "loss"), numbers("whole", "loss"));
  EXPECT_EQ(numbers("part", "evaluation_loss"), numbers("whole", "evaluation_loss"));
}

TEST_F(Conversions, OfImagesOfAnySizeGivesThemInOne) {
  write("pets/cat/a.pgm", "P5 4 2 255\nabcdabcd");
  write("pets/dog/b.ppm", "P6 1 1 255\nabc");
  write("pets/dog/c.pgm", "P5 500 333 255\n" + std::string(500 * 333, 'a'));
  const CommandResult refused = run("alpa-train convert pets --out pets.h5");
  EXPECT_EQ(refused.status, 3);
  EXPECT_THAT(refused.output, HasSubstr("try: --shape HEIGHTxWIDTHx3"));
  const CommandResult converted = run("alpa-train convert pets --shape 2x2x3 --out pets.h5");
  ASSERT_EQ(converted.status, 0) << converted.output;
  EXPECT_THAT(converted.output, HasSubstr("3 samples of 2x2x3, 2 classes"));
  EXPECT_THAT(run("h5ls pets.h5").output, HasSubstr("images                   Dataset {3, 2, 2, 3}"));
}

TEST_F(Conversions, OfATextGivesTheTrainingThatTheTextGives) {
  std::string text;  // bytes below the model's vocabulary of 64
  for (int i = 0; i < 2000; ++i) text += std::to_string(i * i) + " ";
  write("numbers.txt", text);
  ASSERT_EQ(run("alpa-train convert numbers.txt --out numbers.h5").status, 0);
  make_plan("serial", "--method serial");
  train_on("numbers.txt", "serial", 1, "text");
  train_on("numbers.h5", "serial", 1, "hdf5");
  EXPECT_EQ(numbers("text", "loss"), numbers("hdf5", "loss"));
}

TEST_F(Conversions, MayBeMixedAndGoOnWhereTheyWere) {
  std::string squares, signs;  // bytes below the model's vocabulary of 64
  for (int i = 0; i < 2000; ++i) {
    squares += std::to_string(i * i) + " ";
    signs += std::string(1, static_cast<char>('!' + i % 15)) + " ";
  }
  write("squares.txt", squares);
  write("signs.txt", signs);
  write("mix.toml",
        "[[source]]\ndata = \"squares.txt\"\nweight = 0.8\n[[source]]\ndata = \"signs.txt\"\nweight = 0.2\n");
  make_plan("serial", "--method serial");
  train_on("mix.toml", "serial", 1, "whole");
  const std::string halves = "alpa-train serial.h5 --data mix.toml --run-dir halves --steps ";
  ASSERT_EQ(run(halves + "10").status, 0);
  const CommandResult resumed = run(halves + "20 --resume must");
  ASSERT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr("mix 'mix.toml', "));
  EXPECT_EQ(numbers("halves", "loss"), numbers("whole", "loss"));
  write("signs.txt", squares);
  EXPECT_EQ(run(halves + "30 --resume must").status, 3) << "other data";
}

TEST_F(Conversions, OfTextsHasTokensThatAModelLearnsFromAndTheirTokenizer) {
  write("corpus/a.txt", "a rose is a rose");
  write("corpus/b.jsonl", "{\"text\": \"is a\"}\n{\"text\": \"rose\", \"id\": 1}\n");
  write("more.txt", "and so on and so on");
  const std::string tokenizer = ALPA_SOURCE_DIR "/tests/reference/tokenizers/gpt2.json";
  const CommandResult converted =
      run("alpa-train convert corpus more.txt --tokenizer " + tokenizer + " --hold-out 0.2 --out out.h5");
  ASSERT_EQ(converted.status, 0) << converted.output;
  EXPECT_THAT(converted.output, HasSubstr("4 documents of 3 files, "));
  EXPECT_THAT(run("h5dump -a /tokenizer/description out-held-out.h5").output,
              HasSubstr("byte-level BPE, 1300 tokens"));
  EXPECT_EQ(run("alpa-train convert corpus --tokenizer " + tokenizer + " --out " + tokenizer).status, 2)
      << "what is read is not written";
  const CommandResult same = run("alpa-train convert more.txt --tokenizer out.h5 --out same.h5");
  EXPECT_EQ(same.status, 0) << same.output;
}

TEST_F(Conversions, TakesNoJsonLinesForTextWhereItTrains) {
  write("lines.txt", "{\"text\": \"a rose\"}\n");
  make_plan("serial", "--method serial");
  const CommandResult refused = run("alpa-train serial.h5 --data lines.txt --run-dir run");
  EXPECT_EQ(refused.status, 3);
  EXPECT_THAT(refused.output,
              HasSubstr("'lines.txt' is not text: it seems to be JSON lines\n  try: alpa-train convert"));
  EXPECT_EQ(run("alpa-train convert lines.txt --field title --out lines.h5").status, 3);
  EXPECT_EQ(run("alpa-train convert lines.txt --out lines.h5").status, 0);
}

TEST_F(Conversions, OfTreesKeepsTheirWordsForOthers) {
  write("trees.txt", "(3 (2 It) (4 (2 's) (3 good)))\n(1 (1 bad) (2 film))\n");
  write("dev.txt", "(2 (2 It) (3 works))\n");
  const CommandResult converted = run("alpa-train convert trees.txt --from ptb-trees --out trees.h5");
  ASSERT_EQ(converted.status, 0) << converted.output;
  EXPECT_THAT(converted.output,
              HasSubstr("2 trees of 4.0 vertices, up to 2 high, 6 words, 5 classes; 2 in 'trees.h5'"));
  ASSERT_EQ(run("alpa-train convert dev.txt --from ptb-trees --words trees.h5 --out dev.h5").status, 0);
  EXPECT_EQ(run("alpa-train convert dev.txt --from ptb-trees --words trees.h5 --out trees.h5").status, 2);
  EXPECT_THAT(run("h5dump -d /words dev.h5").output, HasSubstr("\"bad\""));
  const CommandResult drawn = run("alpa-train convert synthetic-trees:50 --hold-out 0.2 --out drawn.h5");
  ASSERT_EQ(drawn.status, 0) << drawn.output;
  EXPECT_THAT(run("h5ls -r drawn-held-out.h5").output, HasSubstr("/offsets                 Dataset {11}"));
}

TEST_F(Conversions, ThatFailsSaysWhereAndWritesNothing) {
  write("ragged.csv", "1,2,0\n1,0\n");
  const CommandResult ragged = run("alpa-train convert ragged.csv --out data.h5");
  EXPECT_EQ(ragged.status, 3);
  EXPECT_THAT(ragged.output, AllOf(HasSubstr("'ragged.csv', line 2: 2 columns"), HasSubstr("try: ")));
  EXPECT_EQ(run("alpa-train convert ragged.csv --out data.h5 --from xml").status, 2);
  EXPECT_EQ(run("alpa-train convert ragged.csv --out data.h5 --hold-out 1").status, 2);
  EXPECT_EQ(run("alpa-train convert nowhere --out data.h5").status, 3);
  write("wide.csv", "1,2,3,0\n");
  EXPECT_EQ(run("alpa-train convert wide.csv --shape 2x2 --out data.h5").status, 3);
  EXPECT_THAT(names_in("."), ElementsAre("ragged.csv", "wide.csv"));
}

}  // namespace
}  // namespace alpa
