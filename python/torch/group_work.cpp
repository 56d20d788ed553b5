#include "python/torch/group_work.h"

#include <ATen/ATen.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/record_function.h>

#include <stdexcept>
#include <utility>

namespace espalier::python {
namespace {

c10::intrusive_ptr<c10::ivalue::Future> future_of(const Outputs& outputs) {
  const c10::TypePtr list = c10::ListType::create(c10::TensorType::get());
  std::vector<c10::Device> devices;  // A call's tensors are all on one, which a future has to know but for the CPU.
  if (!outputs.tensors.empty() && !outputs.tensors.front().device().is_cpu()) {
    devices.push_back(outputs.tensors.front().device());
  }
  return c10::make_intrusive<c10::ivalue::Future>(outputs.lists.empty() ? list : c10::ListType::create(list),
                                                  std::move(devices));
}

}  // namespace

GroupWork::GroupWork(int rank, c10d::OpType type, const char* title, const std::vector<at::Tensor>& inputs,
                     Outputs outputs, std::chrono::milliseconds limit, std::function<void(const std::string&)> give_up)
    : Work(rank, type),
      title_(title),
      outputs_(std::move(outputs)),
      limit_(limit),
      give_up_(std::move(give_up)),
      future_(future_of(outputs_)) {
  // Not by Work's own title, whose range begins on the caller's thread and overlaps what that does meanwhile.
  const auto range = std::make_shared<at::RecordFunction>(at::RecordScope::USER_SCOPE);
  if (!range->isActive()) return;
  range->_setAsync();
  begin_range_ =
      at::wrapPropagateTLSState([range, title, values = std::vector<c10::IValue>(inputs.begin(), inputs.end())] {
        range->before(title, c10::ArrayRef<const c10::IValue>(values.data(), values.size()));
      });
  recordFunctionEndCallback_ = at::wrapPropagateTLSState([range] { range->end(); });
}

void GroupWork::begin_range() {
  if (!begin_range_) return;
  begin_range_();
  begin_range_ = nullptr;
}

void GroupWork::run(const std::function<void()>& call) {
  begin_range();
  try {
    call();
  } catch (...) {
    fail(std::current_exception());
    return;
  }
  succeed();
}

void GroupWork::succeed() {
  if (outputs_.lists.empty()) {
    future_->markCompleted(c10::IValue(outputs_.tensors));
  } else {
    future_->markCompleted(c10::IValue(outputs_.lists));
  }
  finish();
}

void GroupWork::fail(std::exception_ptr why) {
  future_->setError(why);
  finish(why);
}

bool GroupWork::wait(std::chrono::milliseconds timeout) {
  const auto limit = timeout == kNoTimeout ? limit_ : timeout;
  std::unique_lock lock(mutex_);
  const auto has_ended = [this] { return completed_; };
  if (limit == kNoTimeout) {
    cv_.wait(lock, has_ended);
  } else if (!cv_.wait_for(lock, limit, has_ended)) {
    lock.unlock();
    const std::string reason =
        std::string(title_) + " timed out: it did not end within " + std::to_string(limit.count()) + " ms";
    if (give_up_) give_up_(reason);
    throw std::runtime_error(reason);
  }
  if (exception_) std::rethrow_exception(exception_);
  return true;
}

std::vector<at::Tensor> GroupWork::result() {
  if (!isCompleted()) throw std::runtime_error(std::string(title_) + " has no result yet: wait for it first");
  if (outputs_.lists.size() <= 1) return outputs_.tensors;
  throw std::runtime_error(std::string(title_) + " of several tensors gives its result by its future");
}

void GroupWork::abort() {
  if (give_up_) give_up_(std::string(title_) + " was aborted");
}

}  // namespace espalier::python
