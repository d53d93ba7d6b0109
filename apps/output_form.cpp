#include "apps/output_form.h"

#include "libalpa/base/error.h"

namespace alpa {

OutputForm output_form(bool json, bool csv) {
  if (json && csv)
    throw Error(ErrorKind::usage, "--json beside --csv: an answer has one form", "one of the two");
  return json ? OutputForm::json : csv ? OutputForm::csv : OutputForm::text;
}

}  // namespace alpa
