#include "base/failure.h"

#include <new>
#include <utility>

namespace heddle {

namespace {

std::shared_ptr<const Failure> make_failure(ErrorCode code, std::string message) {
  return std::make_shared<const Failure>(Failure{code, std::move(message)});
}

}  // namespace

std::shared_ptr<const Failure> failure_of(const std::exception_ptr& error) noexcept try {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return make_failure(e.code(), e.what());
  } catch (const std::bad_alloc&) {
    return out_of_host_memory();
  } catch (const std::exception& e) {
    return make_failure(ErrorCode::backend, e.what());
  } catch (...) {
    return make_failure(ErrorCode::backend, "an exception of unknown type");
  }
} catch (...) {
  return out_of_host_memory();
}

std::shared_ptr<const Failure> out_of_host_memory() noexcept {
  static const auto instance =
      make_failure(ErrorCode::out_of_memory, "there is no host memory left");
  return instance;
}

}  // namespace heddle
