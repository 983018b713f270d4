//! The driver against the model: random histories, and each known fault by itself.

use proptest::prelude::*;

use crate::driver::Ask;
use crate::model::{Arrival, Bench, Habits};

const ROOMY: Habits = Habits { emulator: false, lost_doorbells: 0, rx_len: 8, tx_len: 32, frames: 48, quota: 48 };

const QEMU: Habits = Habits { emulator: true, ..ROOMY };

#[derive(Clone, Debug)]
enum Step {
    Arrive(usize),
    Broken(Arrival),
    MacRuns(usize),
    Interrupt,
    /// The stack runs if it has a reason.
    Net {
        give_back: usize,
    },
    /// The stack sends, and wants free frames.
    Send {
        send: usize,
        give_back: usize,
        ask: (usize, usize),
    },
    Tick,
    Refuse,
    FailBus,
    RestartNet,
    RestartDriver,
}

fn arrival() -> impl Strategy<Value = Arrival> {
    prop_oneof![Just(Arrival::NoEnd), Just(Arrival::NoStart), Just(Arrival::Empty), Just(Arrival::NoStatus)]
}

fn quiet_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1usize..12).prop_map(Step::Arrive),
        1 => arrival().prop_map(Step::Broken),
        4 => (1usize..20).prop_map(Step::MacRuns),
        4 => Just(Step::Interrupt),
        4 => (0usize..33).prop_map(|give_back| Step::Net { give_back }),
        3 => (0usize..12, 0usize..20, (0usize..33, 0usize..16))
            .prop_map(|(send, give_back, ask)| Step::Send { send, give_back, ask }),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => quiet_step(),
        2 => Just(Step::Tick),
        1 => Just(Step::Refuse),
        1 => Just(Step::FailBus),
        1 => Just(Step::RestartNet),
        1 => Just(Step::RestartDriver),
    ]
}

fn run(bench: &mut Bench, step: &Step) {
    match *step {
        Step::Arrive(count) => (0..count).for_each(|_| bench.arrive()),
        Step::Broken(arrival) => bench.arrive_broken(arrival),
        Step::MacRuns(count) => (0..count).for_each(|_| bench.world.0.borrow_mut().stir()),
        Step::Interrupt => bench.interrupt(),
        Step::Net { give_back } => {
            if bench.notified || bench.more {
                bench.exchange(0, give_back, Ask { rx: 32, tx: 0 });
            }
        }
        Step::Send { send, give_back, ask: (rx, tx) } => {
            let tx = tx.min(bench.most_stock.saturating_sub(bench.stock.len()));
            bench.exchange(send, give_back, Ask { rx, tx });
        }
        Step::Tick => bench.tick(),
        Step::Refuse => bench.world.0.borrow_mut().refuse_next = true,
        Step::FailBus => bench.world.0.borrow_mut().fail_bus(),
        Step::RestartNet => bench.restart_net(),
        Step::RestartDriver => bench.restart_driver(),
    }
}

/// Everything that came in came through, once and in order; likewise outwards.
fn check_all_through(bench: &Bench) {
    let expected: Vec<u64> = (1..=bench.arrivals()).collect();
    assert_eq!(bench.received, expected);
    assert_eq!(bench.world.0.borrow().wire_out, bench.queued);
    let world = bench.world.0.borrow();
    assert_eq!(bench.driver.stats().rx_broken, world.broken);
}

/// `part` is a subsequence of `1..`, each number at most once.
fn is_increasing(part: &[u64]) -> bool {
    part.windows(2).all(|pair| pair[0] < pair[1])
}

proptest! {
    /// With frames to spare nothing is lost, and no wake-up depends on a timer.
    #[test]
    fn nothing_is_lost_or_doubled(
        steps in proptest::collection::vec(quiet_step(), 1..200),
        seed: u64,
        emulator: bool,
        rx_len in 2usize..16,
    ) {
        let habits = Habits { emulator, rx_len, ..ROOMY };
        let mut bench = Bench::new(habits, seed);
        bench.most_stock = 12;
        for step in &steps {
            run(&mut bench, step);
            bench.check_census();
        }
        bench.give_back_all();
        bench.settle(0);
        bench.check_census();
        check_all_through(&bench);
    }

    /// Tight pools, full rings, lost doorbells: slow perhaps, but complete.
    #[test]
    fn scarcity_delays_but_loses_nothing(
        steps in proptest::collection::vec(quiet_step(), 1..200),
        seed: u64,
        emulator: bool,
        rx_len in 2usize..9,
        frames in 4u16..20,
        lost_doorbells in prop_oneof![Just(0u32), 2u32..5],
    ) {
        let habits = Habits { emulator, rx_len, frames, lost_doorbells, ..ROOMY };
        let mut bench = Bench::new(habits, seed);
        for step in &steps {
            run(&mut bench, step);
            bench.check_census();
        }
        // The stack gives its stock away, so that frames are left for the ring.
        let stock = bench.stock.len();
        bench.exchange(stock.min(32), 0, Ask { rx: 32, tx: 0 });
        bench.give_back_all();
        bench.settle(60);
        bench.check_census();
        check_all_through(&bench);
    }

    /// Whatever dies or fails: no crash, no frame doubled or made up, every loss counted, and afterwards traffic flows.
    #[test]
    fn faults_cost_frames_but_never_the_driver(
        steps in proptest::collection::vec(any_step(), 1..200),
        seed: u64,
        emulator: bool,
        rx_len in 2usize..9,
        tx_len in 2usize..9,
        quota in 3u16..48,
    ) {
        let habits = Habits { emulator, rx_len, tx_len, quota, ..ROOMY };
        let mut bench = Bench::new(habits, seed);
        for step in &steps {
            run(&mut bench, step);
        }
        bench.settle(60);
        bench.check_census();
        prop_assert!(is_increasing(&bench.received));
        prop_assert!(is_increasing(&bench.world.0.borrow().wire_out));
        let before = bench.received.len();
        (0..20).for_each(|_| bench.arrive());
        bench.settle(60);
        prop_assert_eq!(bench.received.len(), before + 20);
        let out = bench.world.0.borrow().wire_out.len();
        if bench.stock.is_empty() {
            bench.exchange(0, 32, Ask { rx: 0, tx: 1 });
        }
        prop_assert!(!bench.stock.is_empty(), "a free frame for sending");
        bench.exchange(1, 32, Ask { rx: 0, tx: 0 });
        bench.settle(60);
        prop_assert_eq!(bench.world.0.borrow().wire_out.len(), out + 1);
    }
}

fn get_frames(bench: &mut Bench, count: usize) {
    bench.exchange(0, 0, Ask { rx: 0, tx: count });
    assert_eq!(bench.stock.len(), count);
}

#[test]
fn a_full_transmit_ring_refuses_with_a_count_and_keeps_one_descriptor() {
    // Four descriptors hold three frames.
    let mut bench = Bench::new(Habits { tx_len: 4, ..ROOMY }, 1);
    get_frames(&mut bench, 8);
    bench.exchange(8, 0, Ask { rx: 0, tx: 0 });
    assert_eq!(bench.driver.stats().tx_dropped, 5);
    bench.settle(1);
    assert_eq!(bench.world.0.borrow().wire_out, bench.queued[..3]);
    bench.check_census();
}

#[test]
fn an_empty_ring_is_never_started() {
    let mut bench = Bench::new(ROOMY, 1);
    bench.settle(20);
    let before = bench.world.0.borrow().doorbells;
    for _ in 0..1000 {
        bench.interrupt();
        bench.tick();
        bench.exchange(0, 0, Ask { rx: 32, tx: 0 });
    }
    assert_eq!(bench.world.0.borrow().doorbells, before);
}

#[test]
fn short_and_long_frames_are_refused_with_a_count() {
    use abi::FrameDesc;
    use userlib::FrameList;
    let mut bench = Bench::new(ROOMY, 1);
    get_frames(&mut bench, 4);
    let mut list = FrameList::new();
    for (frame, (offset, len)) in bench.stock.clone().iter().zip([(0, 59), (2, 61), (2, 1521), (9, 3)]) {
        let frame = FrameDesc { offset, len, meta: crate::ring::TX, ..*frame };
        list.push(frame).expect("room");
    }
    {
        let mut world = bench.world.0.borrow_mut();
        world.ledger.transfer_in_place(crate::model::NET, crate::model::DRIVER, list.as_mut_slice(), 32).expect("held");
    }
    bench.stock.clear();
    bench.driver.exchange(&mut list, Ask { rx: 0, tx: 0 });
    assert_eq!(bench.driver.stats().tx_dropped, 4);
    bench.settle(1);
    assert!(bench.world.0.borrow().wire_out.is_empty());
    bench.check_census();
}

#[test]
fn a_hung_receiver_is_restarted_and_an_idle_one_is_not() {
    let mut bench = Bench::new(ROOMY, 1);
    bench.arrive();
    bench.settle(0);
    (0..50).for_each(|_| bench.tick());
    assert_eq!(bench.driver.stats().rx_restarts, 0, "idle is no fault");
    bench.world.0.borrow_mut().hung = true;
    for _ in 0..3 {
        bench.arrive();
        (0..50).for_each(|_| bench.world.0.borrow_mut().receive_one());
        bench.tick();
    }
    assert_eq!(bench.driver.stats().rx_restarts, 1, "within 300 ms");
    bench.settle(0);
    let before = bench.received.len();
    (0..10).for_each(|_| bench.arrive());
    bench.settle(0);
    assert_eq!(bench.received.len(), before + 10);
    bench.check_census();
}

#[test]
fn a_receiver_that_misses_some_and_takes_others_is_not_hung() {
    let mut bench = Bench::new(ROOMY, 1);
    for _ in 0..20 {
        bench.world.0.borrow_mut().counts.overruns += 3;
        bench.tick();
        bench.arrive();
        bench.settle(1);
    }
    assert_eq!(bench.driver.stats().rx_restarts, 0);
    assert_eq!(bench.driver.stats().mac.overruns, 60);
    assert_eq!(bench.received.len(), 20);
}

#[test]
fn a_starved_stack_is_no_hung_receiver() {
    // The ring fills, the stack does not run: errors rise and nothing is received, but there is no buffer either.
    let mut bench = Bench::new(ROOMY, 1);
    (0..100).for_each(|_| bench.arrive());
    for _ in 0..30 {
        (0..50).for_each(|_| bench.world.0.borrow_mut().receive_one());
        bench.world.0.borrow_mut().counts.no_buffer += 5;
        bench.tick();
    }
    assert_eq!(bench.driver.stats().rx_restarts, 0);
    bench.settle(0);
    assert_eq!(bench.received.len(), 100);
}

#[test]
fn every_ring_position_survives_a_restart_of_the_driver() {
    for habits in [ROOMY, QEMU] {
        let mut bench = Bench::new(habits, 3);
        for position in 0..50 {
            let before = bench.received.len();
            (0..=position).for_each(|_| bench.arrive());
            bench.settle(0);
            assert_eq!(bench.received.len(), before + position + 1);
            if bench.stock.is_empty() {
                get_frames(&mut bench, 1);
            }
            bench.exchange(1, 32, Ask { rx: 32, tx: 0 });
            bench.settle(0);
            bench.restart_driver();
            bench.settle(0);
            bench.check_census();
        }
        assert_eq!(bench.world.0.borrow().wire_out, bench.queued);
    }
}

#[test]
fn a_lost_doorbell_is_rung_again() {
    let mut bench = Bench::new(ROOMY, 1);
    bench.tick();
    get_frames(&mut bench, 1);
    // Every doorbell is lost from now on.
    bench.world.0.borrow_mut().habits.lost_doorbells = 1;
    bench.exchange(1, 0, Ask { rx: 0, tx: 0 });
    bench.settle(2);
    assert!(bench.world.0.borrow().wire_out.is_empty());
    bench.world.0.borrow_mut().habits.lost_doorbells = 0;
    bench.settle(1);
    assert_eq!(bench.world.0.borrow().wire_out, bench.queued);
}

#[test]
fn what_was_sent_is_taken_back_though_nobody_asks() {
    let mut bench = Bench::new(ROOMY, 1);
    get_frames(&mut bench, 8);
    bench.exchange(8, 0, Ask { rx: 0, tx: 0 });
    bench.settle(1);
    let census = bench.world.0.borrow().ledger.census(1).expect("the pool");
    assert_eq!(usize::from(census.device), ROOMY.rx_len, "only receive buffers are with the device");
    assert_eq!(bench.driver.stats().tx_frames, 8);
}

#[test]
fn the_next_exchange_rings_a_lost_doorbell_again() {
    let mut bench = Bench::new(ROOMY, 1);
    get_frames(&mut bench, 1);
    bench.world.0.borrow_mut().habits.lost_doorbells = 1;
    bench.exchange(1, 0, Ask { rx: 0, tx: 0 });
    bench.world.0.borrow_mut().habits.lost_doorbells = 0;
    bench.exchange(0, 0, Ask { rx: 0, tx: 0 });
    bench.settle(0);
    assert_eq!(bench.world.0.borrow().wire_out, bench.queued);
}

#[test]
fn frames_that_were_fetched_cause_no_interrupt() {
    for habits in [ROOMY, QEMU] {
        let mut bench = Bench::new(habits, 1);
        bench.settle(0);
        for burst in 1..100 {
            bench.arrive();
            bench.world.0.borrow_mut().receive_one();
            bench.interrupt();
            // Two more while it is masked; then the stack fetches all three.
            bench.arrive();
            bench.arrive();
            bench.world.0.borrow_mut().receive_one();
            bench.world.0.borrow_mut().receive_one();
            bench.settle(0);
            assert_eq!(bench.received.len(), 3 * burst);
            assert_eq!(bench.driver.stats().interrupts, burst as u64);
        }
    }
}

#[test]
fn a_transmitter_that_does_not_move_is_restarted_after_a_second() {
    let mut bench = Bench::new(ROOMY, 1);
    get_frames(&mut bench, 2);
    bench.world.0.borrow_mut().habits.lost_doorbells = 1;
    bench.exchange(1, 0, Ask { rx: 0, tx: 0 });
    bench.settle(9);
    assert_eq!(bench.driver.stats().tx_restarts, 0);
    bench.settle(1);
    assert_eq!(bench.driver.stats().tx_restarts, 1);
    assert_eq!(bench.driver.stats().tx_errors, 1);
    bench.check_census();
    bench.world.0.borrow_mut().habits.lost_doorbells = 0;
    bench.exchange(1, 0, Ask { rx: 0, tx: 0 });
    bench.settle(0);
    assert_eq!(bench.world.0.borrow().wire_out, bench.queued[1..]);
}

#[test]
fn whoever_lacks_free_frames_is_told_when_some_come_back() {
    let habits = Habits { rx_len: 2, frames: 6, ..ROOMY };
    let mut bench = Bench::new(habits, 1);
    get_frames(&mut bench, 4);
    // All free frames are on their way out: none to be had.
    bench.exchange(4, 0, Ask { rx: 0, tx: 2 });
    assert_eq!(bench.stock.len(), 0);
    for _ in 0..8 {
        bench.world.0.borrow_mut().send_one();
        bench.interrupt();
    }
    assert!(bench.notified || bench.more);
    bench.exchange(0, 0, Ask { rx: 0, tx: 1 });
    assert_eq!(bench.stock.len(), 1);
}

#[test]
fn the_link_is_followed() {
    let mut bench = Bench::new(ROOMY, 1);
    assert!(bench.driver.link().is_some(), "looked for at the start");
    bench.settle(0);
    for (changes, up) in [(2, false), (3, true), (4, false)] {
        bench.world.0.borrow_mut().partner_link = up;
        (0..5).for_each(|_| bench.tick());
        assert!(bench.notified, "the stack is told");
        assert_eq!(bench.driver.link().is_some(), up);
        assert_eq!(bench.driver.stats().link_changes, changes);
        bench.settle(0);
        (0..10).for_each(|_| bench.tick());
        assert!(!bench.notified, "once");
    }
    let link = bench.world.0.borrow().speed;
    assert_eq!(link.map(|link| link.speed.megabits()), Some(1000));
}

#[test]
fn interrupts_without_end_are_left_for_the_tick() {
    let mut bench = Bench::new(ROOMY, 1);
    let mut taken = 0;
    for _ in 0..1000 {
        let before = bench.driver.stats().interrupts;
        bench.world.0.borrow_mut().babble();
        bench.interrupt();
        taken += bench.driver.stats().interrupts - before;
    }
    assert!(taken <= 10, "{taken} interrupts for nothing in one tick");
    bench.tick();
    bench.arrive();
    bench.settle(0);
    assert_eq!(bench.received.len(), 1);
}
