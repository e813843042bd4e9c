target_sources(heddle PRIVATE ${CMAKE_CURRENT_LIST_DIR}/channel_norm.cpp)
vulkan_shader(channel_norm)
vulkan_shader(group_norm)
