//! The built-in environments as a C library: `libcorral_envs.so`.

envcore::export_table!(envs::TABLE, "corral");
