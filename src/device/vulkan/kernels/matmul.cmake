target_sources(heddle PRIVATE ${CMAKE_CURRENT_LIST_DIR}/matmul.cpp)
vulkan_shader(matmul_scalar)
vulkan_shader(matmul_tiled)
vulkan_shader(matmul_f64 FULL_ONLY)
