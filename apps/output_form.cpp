#include "apps/output_form.h"

#include <cstdio>

#include "libalpa/base/error.h"
#include "libalpa/plan/facts/legend.h"

namespace alpa {

OutputForm output_form(bool json, bool csv) {
  if (json && csv)
    throw Error(ErrorKind::usage, "--json together with --csv: an answer has one form", "one of the two");
  return json ? OutputForm::json : csv ? OutputForm::csv : OutputForm::text;
}

void print_with_legend(const std::string& text) { std::fputs((text + legend_of(text)).c_str(), stdout); }

}  // namespace alpa
