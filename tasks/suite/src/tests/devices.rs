//! Drivers and their interrupts, over restarts.

use abi::stats::TaskState;
use userlib::kernel;

use super::Test;
use crate::check::{Expect, Outcome, equal, holds};
use crate::suite::Suite;
use crate::victims::{revive, state, task};

/// The tests.
pub const TESTS: &[Test] = &[
    Test::restarting(&["uart"], "devices.serial_port_restarts", serial_restarts),
    Test::restarting(&["uart"], "devices.serial_port_stops_with_output_pending", serial_stops),
    Test::new("devices.serial_port_counts", serial_counts),
    Test::restarting(&["mac"], "devices.mac_stops_with_interrupt_pending", mac_stops),
    Test::new("devices.one_notification_for_an_interrupt", one_each),
    Test::new("devices.quiet_drivers_are_quiet", quiet),
];

fn interrupts(name: &str) -> Outcome<u64> {
    Ok(kernel::counters(task(name)).expecting("counters")?.interrupts)
}

/// Output works after each restart, and the interrupt of an empty transmitter neither storms nor stays away.
fn serial_restarts(s: &mut Suite) -> Outcome {
    for round in 0..10 {
        revive(task("uart"))?;
        let before = interrupts("uart")?;
        s.console.serial().write(&[b' '; 200][..10 * round]).expecting("output")?;
        s.console.serial().flush().expecting("flush")?;
        let after = interrupts("uart")?;
        holds(after - before < 300, "interrupts, after restart number", (after - before, round))?;
    }
    Ok(())
}

fn serial_stops(s: &mut Suite) -> Outcome {
    let uart = task("uart");
    for _ in 0..5 {
        // The FIFO is still full of it when the driver ends.
        s.console.serial().write(&[b' '; 60]).expecting("output")?;
        kernel::stop(uart).expecting("a stop")?;
        let before = interrupts("uart")?;
        s.sleep(5000);
        equal(interrupts("uart")?, before, "interrupts of a driver that does not run")?;
        equal(state(uart)?, TaskState::Stopped, "state")?;
        kernel::restart(uart).expecting("a restart")?;
        s.console.serial().write(&[b' '; 200]).expecting("output")?;
        s.console.serial().flush().expecting("flush")?;
    }
    Ok(())
}

fn serial_counts(s: &mut Suite) -> Outcome {
    let before = s.console.serial().status().expecting("status")?;
    s.console.serial().write(&[b' '; 33]).expecting("output")?;
    s.console.serial().flush().expecting("flush")?;
    let after = s.console.serial().status().expecting("status")?;
    equal(after.sent - before.sent, 33, "bytes sent")?;
    equal(after.lost, before.lost, "bytes lost")
}

fn mac_stops(s: &mut Suite) -> Outcome {
    let host = super::network::up(s)?.gateway;
    let mac = task("mac");
    for round in 0..5 {
        // Requests on their way; the answers find no driver.
        for sequence in 0..4 {
            s.net.ping(host, 56, 9000 + 10 * round + sequence).expecting("an echo request")?;
        }
        kernel::stop(mac).expecting("a stop")?;
        let before = interrupts("mac")?;
        s.sleep(5000);
        equal(interrupts("mac")?, before, "interrupts of a driver that does not run")?;
        kernel::restart(mac).expecting("a restart")?;
        let answered = (0..20).any(|number| {
            if s.net.ping(host, 56, 9500 + 20 * round + number).is_err() {
                s.sleep(50_000);
                return false;
            }
            s.until(300_000, |s| s.net.ping_reply().is_ok_and(|reply| reply.sequence >= 9500))
        });
        holds(answered, "an echo reply after round", round)?;
    }
    let census = kernel::frame_census(0).expecting("census")?;
    equal(census.quarantined, 0, "frames in quarantine")
}

/// What the kernel delivered is what the driver handled.
fn one_each(s: &mut Suite) -> Outcome {
    let host = super::network::up(s)?.gateway;
    let handled = |s: &mut Suite| s.mac.statistics().expecting("statistics");
    let before = (interrupts("mac")?, handled(s)?);
    let mut replies = 0;
    for sequence in 0..5000 {
        if s.net.ping(host, 56, 20_000 + sequence).is_ok()
            && s.until(300_000, |s| s.net.ping_reply().is_ok_and(|reply| reply.sequence == 20_000 + sequence))
        {
            replies += 1;
        }
    }
    let after = (interrupts("mac")?, handled(s)?);
    holds(replies >= 4900, "replies to 5000 requests", replies)?;
    let (delivered, handled) = (after.0 - before.0, after.1.interrupts - before.1.interrupts);
    equal(handled, delivered, "interrupts that the driver handled, and those delivered")?;
    // A frame may bring two interrupts at most: one when it was sent, one when it was received.
    let frames = after.1.rx_frames + after.1.tx_frames - before.1.rx_frames - before.1.tx_frames;
    holds(delivered <= frames + frames / 100 + 2, "interrupts and frames", (delivered, frames))
}

fn quiet(s: &mut Suite) -> Outcome {
    super::network::up(s)?;
    s.console.serial().flush().expecting("flush")?;
    s.sleep(10_000);
    let before = [interrupts("uart")?, interrupts("mac")?];
    s.sleep(300_000);
    let after = [interrupts("uart")?, interrupts("mac")?];
    equal(after[0], before[0], "interrupts of a serial port that nobody uses")?;
    // The network is not ours alone.
    holds(after[1] - before[1] < 30, "interrupts of an idle MAC in 0.3 s", after[1] - before[1])
}
