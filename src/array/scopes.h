// What this thread's scopes say.
#pragma once

namespace heddle {

class Device;

/// The device on which this thread makes arrays now (DeviceScope, StreamScope); null outside them.
Device* device_in_scope() noexcept;

}  // namespace heddle
