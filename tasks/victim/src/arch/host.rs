//! The host has no kernel to be stopped by: it is built so that the library can be tested.

macro_rules! only_on_target {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        $(pub fn $name($($argument: $type),*) $(-> $result)? {
            $(let _ = $argument;)*
            unimplemented!("only on the target")
        })*
    };
}

only_on_target! {
    syscall(number: u64, args: [u64; 8]) -> [u64; 8];
    load(address: u64) -> u64;
    store(address: u64, value: u64);
    load_byte(address: u64) -> u8;
    store_byte(address: u64, value: u8);
    jump(address: u64);
    illegal(which: u64);
    vectors(seed: u64, until: u64) -> u64;
    find_vectors(value: u64) -> u64;
    rounding(value: u64) -> u64;
    registers(seed: u64, until: u64) -> u64;
}
