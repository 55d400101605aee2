//! Vec envs in other processes.
mod board;
mod shm;
