target_sources(heddle PRIVATE ${CMAKE_CURRENT_LIST_DIR}/cast.cpp)
vulkan_shader(cast)
vulkan_shader(cast_f64 cast FULL_ONLY -DDOUBLES)
