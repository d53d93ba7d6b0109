#include "apps/check_files.h"

#include <gmock/gmock.h>

#include <fstream>

#include "apps/app.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using testing::HasSubstr;

/// A command that reads a file or folder and writes some, in a folder with a file "in" and a folder "images".
class OutputFiles : public testing::Test {
 protected:
  OutputFiles() {
    write("in", "read");
    write("images/a.png", "read");
  }

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(path(name).parent_path());
    std::ofstream(path(name)) << text;
  }
  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }

  /// What the command says in the folder when it is refused; "" where it runs.
  std::string run(const std::vector<std::string>& arguments) const {
    std::filesystem::path in, more, out, second, profile, trace;
    App app("alpa-tool", "does what a tool does");
    app.argument("IN", in, "what is read")
        .option("--more", more, "what is read too")
        .option("--out", out, "what is written")
        .writes()
        .option("--second", second, "what is written too")
        .writes([&] {
          return second.empty() ? std::vector<std::filesystem::path>{out.string() + "-second"}
                                : std::vector{second};
        })
        .option("--profile", profile, "what is added to")
        .continues()
        .option("--trace", trace, "what every attempt writes")
        .renews([](const std::filesystem::path& file) { return std::filesystem::file_size(file) == 5; });
    std::vector<const char*> line{"alpa-tool"};
    for (const std::string& argument : arguments) line.push_back(argument.c_str());
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(folder_.path());
    bool ran = false;
    testing::internal::CaptureStderr();
    const int status = app.run(static_cast<int>(line.size()), line.data(), [&] { ran = true; });
    const std::string said = testing::internal::GetCapturedStderr();
    std::filesystem::current_path(before);
    EXPECT_EQ(status, ran ? 0 : 2) << said;
    EXPECT_EQ(said.empty(), ran) << said;
    return said;
  }

  TemporaryFolder folder_;
};

TEST_F(OutputFiles, ThatAreWrittenAreNoneThatAreRead) {
  std::filesystem::create_symlink("in", path("link"));
  std::filesystem::create_hard_link(path("in"), path("hard"));
  std::filesystem::create_directory_symlink(".", path("here"));
  for (const std::string& out :
       std::vector<std::string>{"in", "./in", "images/../in", "link", "hard", "here/in", path("in")}) {
    for (const std::string& option : std::vector<std::string>{"--out", "--profile", "--trace", "--second"})
      for (const std::string& forced : std::vector<std::string>{"--force", "--log-level=info"})
        EXPECT_THAT(run({"in", option, out, forced}),
                    HasSubstr(option + " '" + out + "' is the same file as IN 'in'\n  try: another name"));
    EXPECT_THAT(run({out, "--out=new", "--profile=in"}), HasSubstr("is the same file as IN"));
  }
  EXPECT_THAT(run({"images", "--more=in", "--out=in"}), HasSubstr("is the same file as --more 'in'"));
}

TEST_F(OutputFiles, ThatAreWrittenLieInNoFolderThatIsRead) {
  std::filesystem::create_directory_symlink("images", path("pictures"));
  for (const std::string& out :
       std::vector<std::string>{"images/out", "images/a/out", "pictures/out", "images/a.png"})
    for (const std::string& in : std::vector<std::string>{"images", "images/", "pictures", "./images/."})
      EXPECT_THAT(run({in, "--out", out, "--force"}),
                  HasSubstr("--out '" + out + "' lies in IN '" + in + "', which is read"));
  EXPECT_EQ(run({"images/a.png", "--out", "images/out"}), "");
}

TEST_F(OutputFiles, ThatAreWrittenAreNotOneFile) {
  std::filesystem::create_directory_symlink(".", path("here"));
  for (const std::string& out : std::vector<std::string>{"new", "./new", "here/new", path("new")})
    EXPECT_THAT(run({"in", "--out=new", "--second", out, "--force"}),
                HasSubstr("--second '" + out + "' is the same file as --out 'new'"));
  EXPECT_THAT(run({"in", "--out=new", "--profile=new-second"}),
              HasSubstr("--profile 'new-second' is the same file as --second 'new-second'"));
}

TEST_F(OutputFiles, ThatExistAreReplacedWithForceOnly) {
  write("old", "older");
  std::filesystem::create_symlink("nowhere", path("link"));
  EXPECT_THAT(run({"in", "--out=old"}),
              HasSubstr("--out 'old' exists\n  try: another name for --out, or --force to replace it"));
  EXPECT_THAT(run({"in", "--out=link"}), HasSubstr("--out 'link' exists"));
  EXPECT_EQ(run({"in", "--out=old", "--force"}), "");
  EXPECT_EQ(run({"in", "--out=old", "--force", "--force"}), "");
  write("old-second", "derived");
  EXPECT_THAT(run({"in", "--out=old"}), HasSubstr("--out 'old' exists"));
  EXPECT_THAT(run({"in", "--out=new", "--second=old-second"}), HasSubstr("--second 'old-second' exists"));
  EXPECT_EQ(run({"in", "--out=new"}), "");
}

TEST_F(OutputFiles, ThatGoOnNeedNoForce) {
  write("five", "older");
  write("four", "else");
  EXPECT_EQ(run({"in", "--profile=four"}), "");
  EXPECT_EQ(run({"in", "--trace=five"}), "");
  EXPECT_THAT(run({"in", "--trace=four"}), HasSubstr("--trace 'four' exists"));
}

TEST_F(OutputFiles, ThatAreWrittenHaveNamesThatCanBePrinted) {
  EXPECT_THAT(run({"in", "--out=a\nb"}), HasSubstr("--out 'a\\x0ab': the name has control characters"));
  EXPECT_EQ(run({"in", "--out=größer 1"}), "");
}

}  // namespace
}  // namespace alpa
