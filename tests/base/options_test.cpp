#include "libalpa/base/options.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

enum class Course { constant, cosine };

struct SampleOptions {
  std::int64_t steps = 1000;
  double learning_rate = 3e-4;
  bool tied = false;
  std::string note = "say \"hi\"\t";
  Course course = Course::cosine;
  double clip = 1;
  int threads = 2;
  std::vector<std::int64_t> lengths{1, 20};
  std::string order = "1f1b";
};

void describe(SampleOptions& o, OptionsVisitor& visit) {
  visit.field("steps", o.steps, "training steps to run", at_least(1));
  visit.field("learning_rate", o.learning_rate, "peak learning rate", more_than(0));
  visit.field("tied", o.tied, "whether the output shares the embedding");
  visit.field("note", o.note, "free text");
  visit.field("course", o.course, "course of the learning rate",
              {{"constant", Course::constant, "the same at every step"},
               {"cosine", Course::cosine, "half a cosine"}});
  visit.field("clip", o.clip, "bound on the gradient norm");
  visit.field("threads", o.threads, "threads", between(0, 8));
  visit.field("lengths", o.lengths, "lengths to look at", at_least(1));
  visit.field("order", o.order, "order of work", {{"1f1b", "1f1b", "in turn"}, {"gpipe", "gpipe"}});
}

SampleOptions options_of(const std::string& text) {
  TomlDocument document = TomlDocument::parse(text, "o.toml");
  SampleOptions options;
  read_options(document.root(), options);
  document.finish();
  return options;
}

TEST(Options, AreReadFromATableAndKeepDefaultsForAbsentKeys) {
  const SampleOptions options = options_of("steps = 5\ncourse = 'constant'\nthreads = 8\nlengths = [3]\n");
  EXPECT_EQ(options.steps, 5);
  EXPECT_EQ(options.course, Course::constant);
  EXPECT_EQ(options.learning_rate, 3e-4);
  EXPECT_EQ(options.threads, 8);
  EXPECT_EQ(options.lengths, std::vector<std::int64_t>{3});
}

TEST(Options, AreHeldToTheirRangesWordsAndNames) {
  EXPECT_THAT([] { options_of("learning_rate = 0\n"); },
              ThrowsMessage<Error>(HasSubstr("more than 0, got 0")));
  EXPECT_THAT([] { options_of("course = 'linear'\n"); },
              ThrowsMessage<Error>(HasSubstr("one of 'constant', 'cosine'")));
  EXPECT_THAT([] { options_of("threads = 9\n"); }, ThrowsMessage<Error>(HasSubstr("from 0 to 8, got 9")));
  EXPECT_THAT([] { options_of("order = '2f2b'\n"); }, ThrowsMessage<Error>(HasSubstr("'1f1b', 'gpipe'")));
  EXPECT_THAT([] { options_of("lengths = [0]\n"); }, ThrowsMessage<Error>(HasSubstr("at least 1, got 0")));
  EXPECT_THAT([] { options_of("stpes = 1\n"); }, ThrowsMessage<Error>(HasSubstr("did you mean 'steps'?")));
}

TEST(Options, AreWrittenAsTomlThatReadsBackTheSame) {
  const std::string text = options_text(SampleOptions{});
  EXPECT_EQ(text,
            "steps = 1000\nlearning_rate = 0.0003\ntied = false\nnote = \"say \\\"hi\\\"\\u0009\"\n"
            "course = \"cosine\"\nclip = 1.0\nthreads = 2\nlengths = [1, 20]\norder = \"1f1b\"\n");
  EXPECT_EQ(options_text(options_of(text)), text);
}

TEST(Options, AreWrittenAsAnInlineTable) {
  SampleOptions options;
  options.note = "two\nlines";
  const std::string line = options_line(options);
  EXPECT_THAT(line, testing::StartsWith("{steps = 1000, learning_rate = 0.0003, tied = false, "));
  EXPECT_THAT(line, testing::EndsWith(", order = \"1f1b\"}"));
  TomlDocument document = TomlDocument::parse("o = " + line, "o.toml");
  SampleOptions read;
  read_options(document.root().table("o"), read);
  document.finish();
  EXPECT_EQ(options_text(read), options_text(options));
}

TEST(Options, AreListedWithDefaultRangeHelpAndWords) {
  EXPECT_THAT(options_reference<SampleOptions>(),
              HasSubstr("steps = 1000\n    training steps to run; at least 1\n"));
  EXPECT_THAT(options_reference<SampleOptions>(),
              HasSubstr("course = \"cosine\"\n    course of the learning rate\n"
                        "        constant  the same at every step\n        cosine    half a cosine\n"));
}

TEST(RangeText, SaysTheBoundsInWords) {
  EXPECT_EQ(range_text(any_number()), "");
  EXPECT_EQ(range_text(at_least(1)), "at least 1");
  EXPECT_EQ(range_text(more_than(0)), "more than 0");
  EXPECT_EQ(range_text(at_most(0.5)), "at most 0.5");
  EXPECT_EQ(range_text({.high = 2, .high_is_open = true}), "less than 2");
  EXPECT_EQ(range_text(between(0, 1)), "from 0 to 1");
  EXPECT_EQ(range_text(from_below(0, 1)), "from 0 to below 1");
}

}  // namespace
}  // namespace alpa
