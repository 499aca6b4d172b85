#include "braid/validate/run_trainer.h"

#include <string_view>

#include "braid/base/text.h"

namespace braid {
namespace {

/// The number that four digits are; 0 where they are no digits.
int month_number(std::string_view digits) {
  int month = 0;
  for (const char c : digits) {
    if (!is_digit(c)) return 0;
    month = 10 * month + (c - '0');
  }
  return month;
}

/// Year and month in an identifier such as "arxiv:2205.05198" or "arxiv.org/abs/2205.05198": 2205.
/// 0 where there is none.
int month_on_arxiv(std::string_view source) {
  constexpr std::string_view kArchive = "arxiv";
  const std::size_t at = source.find(kArchive);
  if (at == std::string_view::npos) return 0;
  std::string_view rest = source.substr(at + kArchive.size());
  for (const std::string_view page : {".org/abs/", ".org/pdf/"}) {
    if (rest.starts_with(page)) rest.remove_prefix(page.size());
  }
  const std::size_t begin = rest.find_first_of("0123456789");
  if (begin > 1 || rest.size() < begin + 5 || rest[begin + 4] != '.') return 0;
  return month_number(rest.substr(begin, 4));
}

/// Year and month at the end of a trainer's name, such as "… 26.04.01": 2604. 0 where there is
/// none.
int version_in(std::string_view name) {
  const std::size_t space = name.find_last_of(' ');
  const std::string_view last = space == std::string_view::npos ? name : name.substr(space + 1);
  if (last.size() < 5 || last[2] != '.') return 0;
  return month_number(std::string(last.substr(0, 2)) + std::string(last.substr(3, 2)));
}

}  // namespace

TrainerSubject subject_of(const MeasuredRun& run) {
  TrainerSubject subject;
  subject.framework = lowered(run.framework);
  subject.hardware = lowered(run.hardware);
  subject.precision = lowered(run.precision);
  subject.model = lowered(run.model);
  subject.says = lowered(run.notes + ' ' + run.sharding + ' ' + run.schedule);
  subject.version = version_in(subject.framework);
  subject.published = month_on_arxiv(lowered(run.source));
  return subject;
}

TrainerUsual usual_of(const MeasuredRun& run) {
  const TrainerSubject subject = subject_of(run);
  return trainer_of_run(subject).usual(subject);
}

}  // namespace braid
