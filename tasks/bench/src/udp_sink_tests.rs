//! Field cases C2, C3 and C7, and what else peers may send.

extern crate std;
use super::*;
use crate::iperf::CLIENT_HEADER;
use proptest::prelude::*;
use std::vec::Vec;

const PEER: Peer = Peer { address: [10, 0, 2, 2], port: 40_000 };

struct Bed {
    sink: UdpSink,
    now: u64,
    answers: Vec<Vec<u8>>,
    finished: Vec<Finished>,
}

impl Bed {
    fn new() -> Self {
        Self { sink: UdpSink::new(), now: 1_000_000, answers: Vec::new(), finished: Vec::new() }
    }

    fn from(&mut self, peer: Peer, payload: &[u8]) {
        self.now += 1000;
        let mut answer = [0; MAX_ANSWER];
        let step = self.sink.datagram(self.now, peer, payload, &mut answer);
        if step.answer > 0 {
            self.answers.push(answer[..step.answer].to_vec());
        }
        self.finished.extend(step.finished);
    }

    fn take(&mut self, payload: &[u8]) {
        self.from(PEER, payload);
    }

    fn iperf(&mut self, number: i64) {
        let mut bytes = [0; 1470];
        let header = bytes.first_chunk_mut::<CLIENT_HEADER>().expect("long enough");
        Datagram { number: number.abs(), last: number < 0, sent: self.now, wide: true }.write(5001, header);
        self.take(&bytes);
    }

    fn wait(&mut self, micros: u64) {
        self.now += micros;
        while let Some(finished) = self.sink.expire(self.now) {
            self.finished.push(finished);
        }
    }

    fn marks(&mut self, count: usize) {
        for _ in 0..count {
            self.take(b" !\"#");
        }
    }

    fn only(&self) -> Finished {
        assert_eq!(self.finished.len(), 1, "{:?}", self.finished);
        self.finished[0]
    }
}

#[test]
fn a_clean_iperf_run_loses_nothing_whatever_it_counts_from() {
    for (first, count) in [(1, 1), (1, 10), (0, 1), (0, 700)] {
        let mut bed = Bed::new();
        (first..first + count).for_each(|number| bed.iperf(number));
        bed.iperf(-(first + count));
        let finished = bed.only();
        assert!(finished.iperf);
        assert_eq!(
            (finished.report.lost, finished.report.datagrams, finished.report.bytes),
            (0, count as u64 + 1, 1470 * (count as u64 + 1))
        );
        assert_eq!(Report::parse(&bed.answers[0]), Some(finished.report));
    }
}

#[test]
fn repeated_ends_get_the_same_answer() {
    let mut bed = Bed::new();
    (1..=20).for_each(|number| bed.iperf(number));
    for _ in 0..4 {
        bed.iperf(-21);
        bed.wait(250_000);
    }
    assert_eq!(bed.answers.len(), 4);
    assert!(bed.answers.iter().all(|answer| Report::parse(answer) == Some(bed.only().report)));
    // Forgotten when nobody asks any more.
    bed.wait(KEEP);
    assert_eq!(bed.sink.deadline(), None);
}

#[test]
fn losses_and_disorder_are_told_apart() {
    let mut bed = Bed::new();
    [1, 2, 5, 4, 7].into_iter().for_each(|number| bed.iperf(number));
    bed.iperf(-8);
    let report = bed.only().report;
    assert_eq!((report.lost, report.out_of_order, report.datagrams), (2, 1, 8));
}

#[test]
fn a_repeated_datagram_is_no_negative_loss() {
    let mut bed = Bed::new();
    [1, 1, 1, 2].into_iter().for_each(|number| bed.iperf(number));
    bed.iperf(-3);
    assert_eq!(bed.only().report.lost, 0);
}

#[test]
fn an_odd_number_does_not_upset_the_next_run() {
    let mut bed = Bed::new();
    bed.from(Peer { port: 9, ..PEER }, &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
    bed.iperf(1);
    bed.iperf(-2);
    assert_eq!(bed.only().report.lost, 0);
    bed.wait(SILENCE);
    assert_eq!(bed.finished[1].ending, Ending::Silence);
}

#[test]
fn a_second_run_from_the_same_port_is_a_new_one() {
    let mut bed = Bed::new();
    for _ in 0..2 {
        (1..=3).for_each(|number| bed.iperf(number));
        // One that was under way.
        bed.iperf(-4);
        bed.iperf(3);
    }
    assert_eq!(bed.finished.len(), 2);
    assert_eq!(bed.finished[0].report.datagrams, 4);
    assert_eq!(bed.finished[1].report.datagrams, 4);
}

#[test]
fn an_end_without_data_is_answered() {
    let mut bed = Bed::new();
    bed.iperf(-5);
    assert_eq!(bed.answers.len(), 1);
    assert_eq!((bed.only().report.datagrams, bed.only().report.lost), (5, 4));
}

const DATA: &[u8] = b" !\"#$%&'";

#[test]
fn ttcp_ends_after_its_marks_whichever_are_lost() {
    // Start marks, end marks that arrive.
    for (start, end) in [(1, 1), (0, 1), (2, 1), (1, 5), (0, 5), (5, 5)] {
        let mut bed = Bed::new();
        bed.marks(start);
        (0..100).for_each(|_| bed.take(DATA));
        bed.marks(end);
        let finished = bed.only();
        assert_eq!(
            (finished.ending, finished.report.bytes, finished.report.datagrams),
            (Ending::Mark, 800, 100),
            "{start} {end}"
        );
        assert!(!finished.iperf);
        bed.wait(SILENCE + KEEP);
        assert_eq!(bed.finished.len(), 1);
    }
}

#[test]
fn ttcp_without_any_end_mark_ends_by_silence() {
    let mut bed = Bed::new();
    bed.marks(1);
    (0..100).for_each(|_| bed.take(DATA));
    bed.wait(SILENCE - 1);
    assert!(bed.finished.is_empty());
    bed.wait(1);
    let finished = bed.only();
    assert_eq!((finished.ending, finished.report.bytes), (Ending::Silence, 800));
    // Silence does not count as time that the transfer took.
    assert_eq!(finished.report.micros, 99_000);
}

#[test]
fn small_datagrams_of_ttcp_are_counted() {
    let mut bed = Bed::new();
    bed.marks(102);
    bed.wait(SILENCE);
    let finished = bed.only();
    assert_eq!(
        (finished.ending, finished.report.bytes, finished.report.datagrams, finished.report.lost),
        (Ending::Mark, 400, 100, 0)
    );
}

#[test]
fn marks_alone_are_an_empty_transfer() {
    let mut bed = Bed::new();
    bed.marks(2);
    bed.wait(SILENCE);
    assert_eq!((bed.only().report.bytes, bed.only().ending), (0, Ending::Silence));
}

#[test]
fn many_peers_push_the_oldest_out_and_it_is_told() {
    let mut bed = Bed::new();
    for port in 1..=PLACES as u16 + 1 {
        bed.from(Peer { port, ..PEER }, DATA);
    }
    assert_eq!((bed.only().peer.port, bed.only().ending), (1, Ending::Silence));
}

#[derive(Clone, Debug)]
enum Action {
    Iperf(i64),
    Plain(usize),
    Wait(u64),
}

proptest! {
    #[test]
    fn nothing_that_peers_send_breaks_the_books(
        actions in proptest::collection::vec((0u16..12, prop_oneof![
            (-9i64..9).prop_map(Action::Iperf),
            (0usize..40).prop_map(Action::Plain),
            (0u64..20_000_000).prop_map(Action::Wait),
        ]), 0..200)
    ) {
        let mut bed = Bed::new();
        let mut sent = 0;
        for (port, action) in actions {
            let peer = Peer { port, ..PEER };
            match action {
                Action::Iperf(number) => {
                    let mut bytes = [0; CLIENT_HEADER];
                    Datagram { number: number.abs(), last: number < 0, sent: bed.now, wide: true }.write(5001, &mut bytes);
                    sent += bytes.len() as u64;
                    bed.from(peer, &bytes);
                }
                Action::Plain(len) => {
                    sent += len as u64;
                    bed.from(peer, &[0xee; 64][..len]);
                }
                Action::Wait(micros) => bed.wait(micros),
            }
            prop_assert!(bed.sink.deadline().is_none_or(|deadline| deadline <= bed.now + KEEP));
        }
        bed.wait(SILENCE);
        bed.wait(KEEP);
        prop_assert_eq!(bed.sink.deadline(), None);
        let told: u64 = bed.finished.iter().map(|finished| finished.report.bytes).sum();
        prop_assert!(told <= sent);
        for finished in &bed.finished {
            prop_assert!(finished.report.lost <= finished.report.datagrams);
        }
    }
}
