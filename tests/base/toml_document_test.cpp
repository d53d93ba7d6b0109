#include "libalpa/base/toml_document.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

enum class Schedule { constant, cosine };

const std::vector<Word<Schedule>> kSchedules{{"constant", Schedule::constant}, {"cosine", Schedule::cosine}};

/// What finish() says of `text` after `read` has asked for what it wants; "" when all is well.
std::string faults(const std::string& text, const std::function<void(TomlTable)>& read) {
  TomlDocument document = TomlDocument::parse(text, "m.toml");
  read(document.root());
  try {
    document.finish();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
  return "";
}

std::string refusal(const std::string& text) {
  try {
    TomlDocument::parse(text, "m.toml");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
  return "";
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(TomlDocument, NamesAreOfOneLineAndNotEmpty) {
  const auto read = [](const TomlTable& root) { root.name("name"); };
  EXPECT_EQ(faults("name = \"gpt\"", read), "");
  EXPECT_THAT(faults("name = \"\"", read), StartsWith("m.toml:1:8: 'name': expected a name: 1 to 255 bytes"));
  EXPECT_THAT(faults("name = \"a\\u001B[2J\\n\"", read), HasSubstr("got the string 'a\\x1b[2J\\x0a'"));
  EXPECT_THAT(faults("name = 3", read), HasSubstr("none of them a control character, got 3"));
  EXPECT_THAT(faults("", read), HasSubstr("missing key 'name', expected a name"));
}

TEST(TomlTable, GivesValuesByTheirType) {
  TomlDocument document = TomlDocument::parse(R"(
name = "gpt"
layers = 12
rate = 3e-4
whole = 2
tied = true
dims = [1, 2, 3]
names = ["a", "b"]
fractions = [0.5, 1]
[training]
schedule = "cosine"
[[block]]
kind = "attention"
[[block]]
kind = "mlp"
)",
                                              "m.toml");
  const TomlTable root = document.root();
  EXPECT_EQ(root.string("name"), "gpt");
  EXPECT_EQ(root.integer("layers"), 12);
  EXPECT_EQ(root.number("rate"), 3e-4);
  EXPECT_EQ(root.number("whole"), 2.0);
  EXPECT_TRUE(root.boolean("tied"));
  EXPECT_THAT(root.integers("dims"), ElementsAre(1, 2, 3));
  EXPECT_THAT(root.strings("names"), ElementsAre("a", "b"));
  EXPECT_THAT(root.numbers("fractions"), ElementsAre(0.5, 1.0));
  EXPECT_EQ(root.table("training").word("schedule", kSchedules), Schedule::cosine);
  std::vector<std::string> kinds;
  for (const TomlTable& block : root.tables("block")) kinds.push_back(block.string("kind"));
  EXPECT_THAT(kinds, ElementsAre("attention", "mlp"));
  document.finish();
}

TEST(TomlTable, GivesDefaultsForAbsentKeys) {
  TomlDocument document = TomlDocument::parse("", "m.toml");
  const TomlTable root = document.root();
  EXPECT_EQ(root.string("name", "none"), "none");
  EXPECT_EQ(root.integer("layers", 3, at_least(1)), 3);
  EXPECT_EQ(root.number("rate", 0.5), 0.5);
  EXPECT_TRUE(root.boolean("tied", true));
  EXPECT_EQ(root.word("schedule", Schedule::cosine, kSchedules), Schedule::cosine);
  EXPECT_THAT(root.strings("names"), IsEmpty());
  EXPECT_THAT(root.tables("block"), IsEmpty());
  EXPECT_FALSE(root.optional_table("training").has_value());
  EXPECT_FALSE(root.has("name"));
  document.finish();
}

TEST(TomlTable, KeepsEntriesInFileOrder) {
  TomlDocument document =
      TomlDocument::parse("[dims]\nz = 1\na = 'z * 2'\nm.x = 3\n\"k k\" = [1]\nm.b = 4\n", "m.toml");
  std::vector<std::string> seen;
  for (const TomlEntry& entry : document.root().table("dims").entries()) {
    seen.push_back(entry.key);
    entry.value.skip();
  }
  EXPECT_THAT(seen, ElementsAre("z", "a", "m", "k k"));
  document.finish();
}

TEST(TomlTable, LetsAValueBeOfSeveralKinds) {
  TomlDocument document = TomlDocument::parse("[dims]\nhidden = 384\nhead = 'hidden / 6'\n", "m.toml");
  const TomlTable dims = document.root().table("dims");
  EXPECT_EQ(dims.value("hidden").kind(), TomlKind::integer);
  EXPECT_EQ(dims.value("head").kind(), TomlKind::string);
  EXPECT_EQ(dims.value("depth").kind(), TomlKind::absent);
  EXPECT_EQ(dims.value("head").where(), "m.toml:3:8");
}

TEST(TomlDocument, ReportsEveryFaultAtItsPlaceInFileOrder) {
  EXPECT_EQ(faults(R"([training]
batch = 0
rate = "fast"
steps = 1.5
schedule = "cosin"
tied = 1
dims = [1, "two", 3]
[model]
)",
                   [](TomlTable root) {
                     const TomlTable model = root.table("model"), training = root.table("training");
                     model.string("name");
                     model.integers("shape");
                     training.integers("dims");
                     training.integer("batch", 8, at_least(1));
                     training.number("rate", 1, between(0, 1));
                     training.integer("steps", 8);
                     training.word("schedule", Schedule::constant, kSchedules);
                     training.boolean("tied", false);
                     root.table("cluster").string("name");
                   }),
            R"(m.toml:1:1: missing key 'cluster', expected a table
m.toml:2:9: 'training.batch': expected an integer, at least 1, got 0
m.toml:3:8: 'training.rate': expected a finite number, from 0 to 1, got the string 'fast'
m.toml:4:9: 'training.steps': expected an integer, got 1.5
m.toml:5:12: 'training.schedule': expected one of 'constant', 'cosine', got 'cosin'; did you mean 'cosine'?
m.toml:6:8: 'training.tied': expected true or false, got 1
m.toml:7:12: 'training.dims[1]': expected an integer, got the string 'two'
m.toml:8:1: missing key 'name' in 'model', expected a string)");
}

TEST(TomlDocument, RefusesKeysThatNobodyAskedForAndNamesTheNearest) {
  const auto read = [](TomlTable root) {
    root.table("training").integer("steps", 1);
    root.table("training").integer("batch", 1);
    for (const TomlTable& block : root.tables("block")) block.string("kind");
  };
  EXPECT_EQ(
      faults("[training]\nstpes = 5\nwidth = 3\n[[block]]\nkind = 'a'\nkinds = 2\n[extra]\na = 1\n", read),
      R"(m.toml:2:1: unknown key 'stpes' in 'training'; did you mean 'steps'?
m.toml:3:1: unknown key 'width' in 'training'; known here: batch, steps
m.toml:6:1: unknown key 'kinds' in 'block[0]'; did you mean 'kind'?
m.toml:7:2: unknown key 'extra'; known here: block, training)");
}

TEST(TomlDocument, CountsNoKeyAsUnknownBelowAValueOfTheWrongType) {
  EXPECT_EQ(faults("name = {first = 1}\nblock = [{kind = 1}]\n",
                   [](TomlTable root) {
                     root.string("name");
                     root.strings("block");
                   }),
            R"(m.toml:1:8: 'name': expected a string, got a table
m.toml:2:10: 'block[0]': expected a string, got a table)");
}

TEST(TomlDocument, TakesFaultsThatAReaderFinds) {
  EXPECT_EQ(
      faults("input = 'x'\n", [](TomlTable root) { root.value("input").fault("no tensor is called 'x'"); }),
      "m.toml:1:9: no tensor is called 'x'");
}

TEST(TomlDocument, ReportsTheSameFaultOnceAndFiftyAtMost) {
  EXPECT_EQ(faults("a = 1\n", [](TomlTable root) { root.string("a"), root.string("a"); }),
            "m.toml:1:5: 'a': expected a string, got 1");
  std::string many;
  for (int i = 0; i < 60; ++i) many += "k" + std::to_string(i) + " = 1\n";
  const std::string text = faults(many, [](TomlTable) {});
  EXPECT_THAT(text, HasSubstr("m.toml:50:1: unknown key 'k49'\nm.toml: and 10 more faults"));
}

TEST(TomlTable, StandsInForRefusedNumbersWithinTheirRange) {
  TomlDocument document = TomlDocument::parse("a = 0\nb = 7.0\nc = nan\n", "m.toml");
  EXPECT_EQ(document.root().integer("a", at_least(1)), 1);
  EXPECT_EQ(document.root().integer("b", more_than(2)), 3);
  EXPECT_EQ(document.root().number("c", between(0.25, 0.5)), 0.25);
  EXPECT_EQ(document.root().integer("missing", at_least(4)), 4);
}

TEST(TomlDocument, ShowsControlCharactersAndLongTextHarmlessly) {
  EXPECT_EQ(faults("\"a\\u001b[31m\" = 1\n", [](TomlTable) {}), "m.toml:1:1: unknown key 'a\\x1b[31m'");
  const std::string text =
      faults("a = '" + repeated("x", 5000) + "'", [](TomlTable root) { root.integer("a"); });
  EXPECT_LT(text.size(), 200u);
  EXPECT_THAT(text, HasSubstr("xxx...xxx"));
}

TEST(TomlDocument, KeepsItsCursorsWhenMoved) {
  TomlDocument first = TomlDocument::parse("a = 1\n[t]\nb = 'x'\n", "m.toml");
  const TomlTable t = first.root().table("t");
  const TomlDocument second = std::move(first);
  EXPECT_EQ(t.string("b"), "x");
  EXPECT_EQ(t.where(), "m.toml:2:1");
}

TEST(TomlDocument, RefusesWhatIsNotTomlWithItsPlace) {
  EXPECT_THAT(refusal("a = 1\nb = [1,\n"), StartsWith("m.toml:2:9: "));
  EXPECT_THAT(refusal("a = 1\na = 2\n"), StartsWith("m.toml:2:"));
  EXPECT_THAT(refusal("a\n"), StartsWith("m.toml:1:"));
  EXPECT_THAT(refusal("a = \"open\n"), StartsWith("m.toml:1:"));
  EXPECT_THAT(refusal("a = 99999999999999999999\n"), StartsWith("m.toml:1:"));
  EXPECT_THAT(refusal("a = '\xff'\n"), StartsWith("m.toml:1:"));
  EXPECT_THAT(refusal(std::string("a = 1\0\n", 7)), StartsWith("'m.toml' is binary"));
}

// toml++ 3.3 runs into an assertion or into undefined behaviour on these.
TEST(TomlDocument, RefusesWhatTheParserStumblesOver) {
  EXPECT_EQ(refusal("a = 1\n[[[b]]]\n"), "m.toml:2:3: a table header has one bracket or two");
  EXPECT_EQ(refusal("[ }\n"), "m.toml:1:3: expected the name of a table");
  EXPECT_EQ(refusal("a = [ }\n"), "m.toml:1:7: '}' closes nothing that is open");
  EXPECT_THAT(refusal("a = 0xff\"\xC3\xA9\"\n"), StartsWith("m.toml:1:"));
  EXPECT_THAT(refusal("\xC3\xA9 = 1\n"), StartsWith("m.toml:1:1: "));
  EXPECT_EQ(refusal("a = \"\"\"x\\\n  \xC3\xA9\"\"\" # \xE3\x81\x82\n"), "");
}

// Each of these would recurse once per level in the parser or in the destructor of what it built.
TEST(TomlDocument, RefusesDeepNestingHoweverItIsWritten) {
  constexpr int n = 100'000;
  const std::vector<std::string> deep{
      "a=" + repeated("[", n),
      "a=" + repeated("[", n) + repeated("]", n),
      "a=" + repeated("{b=", n),
      "a=" + repeated("[{b=", n),
      repeated("a.", n) + "a=1",
      "[" + repeated("a.", n) + "a]",
      "[[" + repeated("a.", n) + "a]]",
      "x=1\n" + repeated("\"k\" . ", n) + "a=1",
      "\xEF\xBB\xBF[" + repeated("a.", 40) + "a]\n" + repeated("b.", 40) + "b=1",
      "[" + repeated("a.", 40) + "a]\nc=[" + repeated("[", 40),
      "a=\"\"\"x\"\"\"\"\nb=" + repeated("[", n),
      "a='''x''''' #'''\nb=" + repeated("[", n),
      "a=[\"\"\"x\"\"\"\", " + repeated("[", n),
      "a=\"\\\"\"\nb=" + repeated("[", n),
      "a='\\'\nb=" + repeated("[", n),
      "a=\"open\nb=" + repeated("[", n),
  };
  for (const std::string& text : deep)
    EXPECT_THAT(refusal(text), HasSubstr("nested more than 64 levels deep")) << text.substr(0, 60);
}

TEST(TomlDocument, AcceptsNestingUpToTheBound) {
  EXPECT_EQ(refusal("a = " + repeated("[", 60) + repeated("]", 60) + "\n"), "");
  EXPECT_EQ(refusal("[" + repeated("a.", 30) + "a]\n" + repeated("b.", 30) + "b = 1.5\n"), "");
  EXPECT_EQ(refusal(repeated("a = [\n 1.5, 2.5\n]\n", 1)), "");
  std::string long_list = "a = [";
  for (int i = 0; i < 1000; ++i) long_list += "0.5, ";
  EXPECT_EQ(refusal(long_list + "]\n"), "");
  EXPECT_EQ(refusal("a = \"" + repeated("[", 1000) + "\" # " + repeated("{", 1000) + "\n"), "");
  EXPECT_EQ(
      refusal("a = '''\n" + repeated("[\n", 1000) + "'''\nb = \"\"\"\n" + repeated("{.", 1000) + "\"\"\"\n"),
      "");
}

TEST(TomlDocument, RefusesATextOfMoreThanOneMebibyte) {
  EXPECT_EQ(refusal("# " + std::string(1 << 20, 'x')),
            "m.toml: larger than 1048576 bytes, which no TOML file of this suite is\n  try: check the path");
}

class ReadToml : public testing::Test {
 protected:
  ReadToml() { std::filesystem::create_directories(folder_); }
  ~ReadToml() override { std::filesystem::remove_all(folder_); }
  std::string refused(const std::filesystem::path& path) {
    try {
      read_toml(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      return error.what();
    }
    return "";
  }
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("read_toml_" + std::to_string(::getpid()));
};

TEST_F(ReadToml, ReadsAFileAndNamesItInFaults) {
  std::ofstream(folder_ / "m.toml") << "steps = 5\n";
  TomlDocument document = read_toml(folder_ / "m.toml");
  EXPECT_EQ(document.root().integer("steps"), 5);
  EXPECT_EQ(document.root().value("steps").where(), (folder_ / "m.toml").string() + ":1:9");
}

TEST_F(ReadToml, NamesTheFileBesideThatMayBeMeant) {
  std::ofstream(folder_ / "model.toml") << "steps = 5\n";
  std::ofstream(folder_ / "modle.h5") << "of another ending";
  const std::string meant = "\n  try: did you mean '" + (folder_ / "model.toml").string() + "'?";
  EXPECT_THAT(refused(folder_ / "modle.toml"), HasSubstr("No such file or directory" + meant));
  EXPECT_THAT(refused(folder_ / "else.toml"), HasSubstr("\n  try: check the path"));
  EXPECT_THAT(refused("https://example.org/model.toml"), HasSubstr("\n  try: download it first"));
}

TEST_F(ReadToml, SaysWhatAFileIsThatIsNoToml) {
  const struct {
    std::string text;
    const char* refusal;
  } table[] = {{"", "is empty, expected TOML"},
               {"# nothing\n\n", "is empty, expected TOML"},
               {"\x89HDF\r\n\x1a\n", "is an HDF5 file, expected TOML"},
               {std::string("\xff\xfe"
                            "a\0",
                            4),
                "is text of 16 bits a character, expected TOML"},
               {std::string("a\0=\0", 4), "is text of 16 bits a character, expected TOML"},
               {std::string("abc\0", 4), "is binary, expected TOML"},
               {"\n {\"a\": 1}", "is JSON, expected TOML"}};
  for (const auto& [text, refusal] : table) {
    std::ofstream(folder_ / "m.toml") << text;
    EXPECT_THAT(refused(folder_ / "m.toml"), HasSubstr(std::string("m.toml' ") + refusal));
  }
}

TEST(TomlDocument, ShowsHowWhatIsNoTomlIsWritten) {
  const struct {
    const char *text, *refusal;
  } table[] = {
      {"a = bf16\n", "m.toml:1:5: could not determine value type\n  try: quotes around a text: a = \"bf16\""},
      {"a = True", "\n  try: a = true"},
      {"a = 80GB", "\n  try: a number without a unit, which is that of the key: a = 80"},
      {"a = -1.5e-3x", "which is that of the key: a = -1.5e-3"},
      {"a = 100,", "\n  try: without the comma"},
      {"a = 100 // many", "\n  try: # before a comment"},
      {"// many", "\n  try: # before a comment"},
      {"a: 1", "expected '=', saw ':'\n  try: '=' between key and value: a = ..."},
      {"a =", "\n  try: a value behind '=', or the line left out: a = ..."},
      {"a = \"b\n", "\n  try: a text ends on its line, with the quote that it begins with"},
      {"a = \u201cb\u201d", "\n  try: straight quotes"},
      {"a = 1\na = 2", "m.toml:2:5: cannot redefine existing integer 'a'\n  try: give it once"},
      {"[a\nb = 1", "m.toml:1:3: expected ']', which ends the name of a table"},
      {"a = \"\xe8\"", "\n  try: save the file as UTF-8"},
  };
  for (const auto& [text, expected] : table) EXPECT_THAT(refusal(text), HasSubstr(expected)) << text;
}

TEST(TomlDocument, ShowsHowANumberIsWritten) {
  const auto read = [](TomlTable root) {
    root.integer("a", 1);
    root.number("b", 1.0);
  };
  EXPECT_THAT(faults("a = 8.0", read), HasSubstr("expected an integer, got 8.0; write 8"));
  EXPECT_THAT(faults("a = 1e6", read), HasSubstr("expected an integer, got 1000000.0; write 1000000"));
  EXPECT_THAT(faults("a = \"8\"", read), HasSubstr("got the string '8'; write 8 without quotes"));
  EXPECT_THAT(faults("b = \"80GB\"", read),
              HasSubstr("got the string '80GB'; write a number alone, in the unit of the key"));
}

TEST(TomlDocument, OfAnotherPurposeIsOneFault) {
  const auto read_cluster = [](TomlTable root) { root.integer("devices_per_node", 1); };
  EXPECT_EQ(faults("[training]\nbatch = 1\n[[layer]]\n", read_cluster),
            "m.toml: this is a model, which alpa-profile and alpa-plan take first; expected a cluster file");
  EXPECT_THAT(faults("[training]\nbatch = 1\n", [](TomlTable root) { root.integer("steps", 1); }),
              HasSubstr("m.toml:1:2: unknown key 'training'"));
}

TEST_F(ReadToml, RefusesWhatIsNotAReadableFileOfBoundedSize) {
  EXPECT_EQ(refused("no/such.toml"),
            "cannot read 'no/such.toml': No such file or directory\n  try: check the path");
  EXPECT_EQ(refused("/dev/zero"), "cannot read '/dev/zero': not a regular file\n  try: check the path");
  EXPECT_THAT(refused(folder_), HasSubstr("it is a folder, expected a file\n  try: name a file in it"));
  std::ofstream(folder_ / "large.toml") << std::string(3 << 20, '#');
  EXPECT_THAT(refused(folder_ / "large.toml"), HasSubstr("larger than 1048576 bytes"));
}

}  // namespace
}  // namespace alpa
